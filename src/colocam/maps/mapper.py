"""Maps of many frames, in the 8 bits that thresholds and boxes read."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from colocam.boxes.quantize import to_8bit
from colocam.cams import full_size
from colocam.config import ColorMean
from colocam.data.samples import Samples
from colocam.maps.focus import of_classes
from colocam.maps.postprocess import finish
from colocam.models import LocalizerNet, foreground
from colocam.types import Levels


class Mapper(NamedTuple):
    """What draws the maps of a method.

    Attributes:
        draw: frames (B, 3, S, S) in 0–255, classes (B,) → maps (B, S, S) in 0–1, and LayerCAMs of these classes
            (B, h, w) to focus them by, or None.
        color_mean: whose colours complete them.
    """

    draw: Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]
    color_mean: ColorMean = "off"


def cam_mapper(maps: Callable[[Tensor, Tensor], Tensor], size: int) -> Mapper:
    """Class activation maps (B, h, w) at full size."""
    return Mapper(lambda frames, classes: (full_size(maps(frames, classes), size), None))


def decoder_mapper(net: LocalizerNet, color_mean: ColorMean, *, focus: bool) -> Mapper:
    """The foreground of a decoder, focused on the class if asked."""

    def draw(frames: Tensor, classes: Tensor) -> tuple[Tensor, Tensor | None]:
        seen = net(frames)
        return foreground(seen.map_logits), of_classes(seen.activations, classes) if focus else None

    return Mapper(draw, color_mean)


@torch.inference_mode()
def map_batches(mapper: Mapper, samples: Samples, size: int, device: torch.device) -> Iterator[Levels]:
    """Maps of all samples in order, batch by batch, a clip's frames together."""
    for frames, classes, clips in samples.clips_together(size, device):
        maps, activations = mapper.draw(frames, classes)
        sequences = {"off": None, "frame": torch.arange(len(maps)), "clip": clips}[mapper.color_mean]
        yield to_8bit(finish(frames, maps, sequences, activations)).cpu().numpy()
