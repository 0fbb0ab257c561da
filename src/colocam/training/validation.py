"""Measure a model on the validation frames after each epoch: with boxes if there are some, else with tags and maps."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.boxes import to_8bit
from colocam.boxes.candidates import find_chooser
from colocam.boxes.extract import largest_boxes
from colocam.boxes.quantize import otsu_levels, tags_only_threshold
from colocam.cams import extract, min_max
from colocam.config.schema import Frames as FrameSizes
from colocam.data.batches import Boxes, Samples
from colocam.evaluation.metrics import Frames, best_threshold, box_hits
from colocam.evaluation.metrics.protocols import chooser_threshold
from colocam.maps.mapper import Mapper, cam_mapper, map_batches
from colocam.models import Classifier
from colocam.temporal.presence import Calibration, calibrate
from colocam.training.loop import Validation, Value
from colocam.types import Float64Array, Levels

THRESHOLDS = np.arange(250) / 250
"""τ = 0, 0.004, … as published for validation during training."""

LEAST_BACKGROUND = 0.1
"""Frames with a smaller share of background are not used to calibrate presence."""


@dataclass(frozen=True, slots=True)
class Validator:
    """Measures classifiers and decoders on the validation frames.

    Attributes:
        samples: validation frames.
        boxes: true boxes of each frame in pixels of the maps, at least one each; None: there are no boxes.
        tags: names of the classes in the order of the logits.
        sizes: sides of the model's input and of its maps.
        device: the model's device.
        cam: name in ``CAMS``: with boxes, classifiers are also measured by these maps.
    """

    samples: Samples
    boxes: list[Boxes] | None
    tags: tuple[str, ...]
    sizes: FrameSizes
    device: torch.device
    cam: str = "layercam"

    @torch.inference_mode()
    def classifier(self, classifier: Classifier) -> Validation:
        """Scores of a classifier: ``best``, minus its cross-entropy; with boxes also ``cam``, CorLoc of its CAMs."""
        logits = torch.cat([classifier.logits(frames).float().cpu() for frames, _ in self._batches()])
        classes = self.samples.classes
        loss = float(F.cross_entropy(logits, classes))
        accuracy = float((logits.argmax(1) == classes).float().mean())
        if self.boxes is None:
            return Validation({"best": -loss}, {"loss": loss, "accuracy": accuracy})
        maps = self._maps(cam_mapper(partial(extract, self.cam, classifier), self.sizes.map_side))
        _, corloc = self._choose(maps, self.boxes)
        return Validation({"best": -loss, "cam": corloc}, {"loss": loss, "accuracy": accuracy, "corloc": corloc})

    @torch.inference_mode()
    def entropies(self, read: Callable[[Tensor], Iterable[Tensor]]) -> list[float]:
        """Cross-entropy of the tags, mean over the frames, for each of the logits (B, K) that ``read`` gives."""
        losses = []
        for frames, classes in self._batches():
            parts = [F.cross_entropy(logits.float(), classes, reduction="none") for logits in read(frames)]
            losses.append(torch.stack(parts))
        means: list[float] = torch.cat(losses, 1).mean(1).tolist()
        return means

    @torch.inference_mode()
    def accuracy(self, classifier: Classifier) -> float:
        """Share of the frames whose class is right, mean over the classes that occur, 0–1."""
        correct = [classifier.logits(frames).argmax(1) == classes for frames, classes in self._batches()]
        right, classes = torch.cat(correct).double().cpu(), self.samples.classes
        return float(torch.stack([right[classes == tag].mean() for tag in set(classes.tolist())]).mean())

    @torch.inference_mode()
    def localizer(self, mapper: Mapper, epoch: int, plain: Mapper | None = None) -> Validation:
        """Score of a decoder: ``best``, its CorLoc with boxes, else the epoch, so that the last epoch is kept.

        Without boxes, no measure of tags and maps chooses better than the last epoch (docs/method/tags-only.md). The
        value ``threshold`` is chosen for the best CorLoc with boxes, else it is the method's own, or from the maps.
        Where ``plain`` is given, the same maps without color mean, the value ``color_mean`` is that of the one whose
        CorLoc is higher, or without boxes the one that :func:`color_growth` decides for.
        """
        found, told = self._measure(mapper), dict[str, Value]()
        if plain is not None:
            without = self._measure(plain)
            if found.corloc is None or without.corloc is None:
                growth = color_growth(found.maps, without.maps, without.threshold)
                worse, told["color_growth"] = growth < 1, growth
            else:
                worse = without.corloc > found.corloc
            found = without if worse else found
            told["color_mean"] = found.mapper.color_mean
        told["threshold"] = found.threshold
        if found.corloc is None:
            return Validation({"best": float(epoch)}, told)
        return Validation({"best": found.corloc}, told | {"corloc": found.corloc})

    def _measure(self, mapper: Mapper) -> "_Measured":
        maps = self._maps(mapper)
        if self.boxes is not None:
            return _Measured(mapper, maps, *self._choose(maps, self.boxes, mapper.chooser))
        return _Measured(mapper, maps, tags_only_threshold(maps) if mapper.threshold is None else mapper.threshold)

    @torch.inference_mode()
    def presence(self, classifier: Classifier) -> Calibration | None:
        """Calibrate presence without labels: peaks of the tag's CAM in whole frames against peaks in their background.

        None where the validation frames do not suffice.
        """
        peaks_of_batches = [
            background_peaks(extract("cam", classifier, frames, classes)) for frames, classes in self._batches()
        ]
        peaks, background = (torch.cat(part).double().cpu().numpy() for part in zip(*peaks_of_batches, strict=True))
        return calibrate(peaks, background[np.isfinite(background)])

    def _choose(self, maps: Levels, boxes: list[Boxes], chooser: str = "largest") -> tuple[float, float]:
        """The threshold with the best CorLoc, and that CorLoc in percent: mean over classes, as in ``validation``."""
        clips = self.samples.indices.clips.numpy()
        frames = Frames(self.tags, self.samples.classes.numpy(), clips)
        if find_chooser(chooser).by_shot:
            return chooser_threshold(maps, boxes, frames, chooser, clips)
        hits = box_hits(maps, boxes, THRESHOLDS)
        means = np.nanmean(frames.class_means(hits), axis=0)
        return best_threshold(hits, frames, THRESHOLDS), 100 * float(means.max())

    def _maps(self, mapper: Mapper) -> Levels:
        return np.concatenate(list(map_batches(mapper, self.samples, self.sizes.crop, self.device)))

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.samples.batches(self.sizes.crop, self.device)


class _Measured(NamedTuple):
    """The maps of a decoder on the validation frames, τ, and with boxes its CorLoc in percent."""

    mapper: Mapper
    maps: Levels
    threshold: float
    corloc: float | None = None


def color_growth(completed: Levels, plain: Levels, threshold: float) -> float:
    """Size of the boxes of maps with color mean relative to those without it, without labels.

    With a and b the areas of a frame's two boxes (largest contour at the same τ) and g the mean of (a − b) / (a + b),
    it is (1 + g) / (1 − g): a / b, if that were the same in all frames. Frames weigh by the maximum of their map, so
    that those in which the decoder sees no object say little. At least 1: colors complete the decoder's maps. Less:
    the object shares its colors with the background, and the color mean leaves only its most distinct part above τ.

    Args:
        completed: (N, H, W) maps with color mean.
        plain: (N, H, W) the same without.
        threshold: τ of both.
    """
    with_colors, without = (_areas(maps, threshold) for maps in (completed, plain))
    weights = plain.max((1, 2), initial=0).astype(np.float64)
    change = (with_colors - without) / np.maximum(with_colors + without, 1.0)
    mean = float(weights @ change) / max(float(weights.sum()), 1.0)
    return (1 + mean) / max(1 - mean, 1e-6)


def _areas(maps: Levels, threshold: float) -> Float64Array:
    """(N,) area of each map's box, in pixels."""
    boxes = largest_boxes(maps, threshold)[0].astype(np.float64)
    areas: Float64Array = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return areas


def background_peaks(cams: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum of each map, and its maximum in the background.

    The background is what does not exceed Otsu's threshold and has no neighbor that does: the features of cells beside
    the object also see the object.

    Args:
        cams: (B, h, w), not normalized.

    Returns:
        (B,) and (B,); the latter is NaN where there is too little background.
    """
    maps = min_max(cams)
    levels, defined = otsu_levels(maps)
    above = (to_8bit(maps) > levels[:, None, None]).to(cams.dtype)
    background = F.max_pool2d(above[:, None], 3, stride=1, padding=1)[:, 0] == 0
    enough = defined & (background.float().mean((1, 2)) >= LEAST_BACKGROUND)
    highest = torch.where(background, cams, -torch.inf).amax((1, 2))
    return cams.amax((1, 2)), torch.where(enough, highest, torch.nan)
