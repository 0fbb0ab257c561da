"""Maps of many frames of a data set, in the 8 bits that thresholds and boxes read."""

from collections.abc import Callable, Iterator
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from colocam.boxes.quantize import to_8bit
from colocam.data.batches import Samples, frames_per_pass
from colocam.maps.postprocess import of_classes, postprocess
from colocam.maps.prior import Prior, weigh_where_it_agrees
from colocam.models import LocalizerNet, foreground
from colocam.models.cam_formulas import full_size
from colocam.models.model_file import Model
from colocam.temporal.cuts import color_histograms, find_cuts, window_starts
from colocam.temporal.smoothing import OFFLINE
from colocam.types import ColorMean, Levels


class Mapper(NamedTuple):
    """Computes the maps of a method.

    Attributes:
        draw: frames (B, 3, S, S) in 0–255, classes (B,) → maps (B, M, M) in 0–1, and LayerCAMs of these classes
            (B, h, w) to focus them by, or None.
        color_mean: which frames complete each other's maps by color; ``clip`` means a window.
        chooser: name in ``CHOOSERS`` of the rule that reads boxes off these maps.
        threshold: τ where no boxes choose it; None: the mean of the validation maps.
        class_thresholds: τ of each class instead; None: one for all.
        power: of the focus.
        prior: weighs the maps; None: they stay as they are.
    """

    draw: Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]
    color_mean: ColorMean = "off"
    chooser: str = "largest"
    threshold: float | None = None
    class_thresholds: tuple[float, ...] | None = None
    power: float = 1.0
    prior: Prior | None = None


def cam_mapper(maps: Callable[[Tensor, Tensor], Tensor], size: int) -> Mapper:
    """Class activation maps (B, h, w), resized to ``size``."""
    return Mapper(lambda frames, classes: (full_size(maps(frames, classes), size), None))


def decoder_mapper(
    net: LocalizerNet,
    color_mean: ColorMean,
    *,
    focus: float,
    chooser: str = "largest",
    threshold: float | None = None,
) -> Mapper:
    """The foreground of a decoder, focused on the class with the power ``focus``, or not if 0; see :class:`Mapper`."""

    def draw(frames: Tensor, classes: Tensor) -> tuple[Tensor, Tensor | None]:
        map_logits, activations = net.maps(frames)
        return foreground(map_logits), of_classes(activations, classes) if focus else None

    return Mapper(draw, color_mean, chooser, threshold, power=float(focus))


def model_mapper(model: Model) -> Mapper:
    """The maps of a model, with its post-processing."""
    card = model.card
    return decoder_mapper(model.net, card.color_mean, focus=card.focus_power(), chooser=card.chooser)


@torch.inference_mode()
def map_batches(mapper: Mapper, samples: Samples, size: int, device: torch.device) -> Iterator[Levels]:
    """Maps of all samples in order, in batches; the color mean "clip" is computed over windows, as in localization."""
    for part, windows in window_batches(samples, frames_per_pass(device), windows=mapper.color_mean == "clip"):
        yield map_levels(mapper, *samples.read(part, size, device), windows)


@torch.inference_mode()
def map_levels(mapper: Mapper, frames: Tensor, classes: Tensor, windows: Tensor) -> Levels:
    """Maps (B, M, M) of frames (B, 3, S, S) in 0–255, for classes (B,), with (B,) ids of their windows."""
    maps, activations = mapper.draw(frames, classes)
    sequences = {"off": None, "frame": torch.arange(len(maps)), "clip": windows}[mapper.color_mean]
    levels: Levels = to_8bit(postprocess(frames, maps, sequences, activations, mapper.power)).cpu().numpy()
    if mapper.prior is not None:
        images = frames.round().byte().permute(0, 2, 3, 1).cpu().numpy()
        levels, _ = weigh_where_it_agrees(levels, mapper.prior.maps(images))
    return levels


def window_batches(samples: Samples, most: int, *, windows: bool) -> Iterator[tuple[slice, Tensor]]:
    """Parts of at most ``most`` samples, and (B,) window ids from 0; a window is never divided.

    Without ``windows`` each sample is a window of its own.
    """
    start, lengths = 0, list[int]()
    for length in chain(_window_lengths(samples) if windows else repeat(1, len(samples)), [most + 1]):
        if sum(lengths) + length > most and lengths:
            end = start + sum(lengths)
            yield slice(start, end), torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
            start, lengths = end, []
        lengths.append(length)


def _window_lengths(samples: Samples) -> Iterator[int]:
    """Lengths of the windows of all samples in order: the shots among the samples of each clip, divided."""
    cached = zip(samples.indices.clips.tolist(), samples.indices.frames.tolist(), strict=True)
    for clip, pairs in groupby(cached, key=itemgetter(0)):
        frames = samples.clips[clip].frames
        histograms = [color_histograms(frames[frame : frame + 1]) for _, frame in pairs]
        starts, _ = window_starts(find_cuts(np.concatenate(histograms), OFFLINE.cuts))
        yield from np.diff([*np.flatnonzero(starts), len(starts)]).tolist()
