"""How good are these weights? From tags and maps alone, or from boxes where a user has some."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.boxes import to_8bit
from colocam.boxes.otsu import otsu_levels
from colocam.boxes.tags_only import tags_only_threshold
from colocam.cams import extract
from colocam.cams.normalise import min_max
from colocam.config import Cam
from colocam.data.samples import Boxes, Samples
from colocam.maps.mapper import Mapper, cam_mapper, map_batches
from colocam.metrics import Frames, best_threshold, box_hits
from colocam.models import Classifier
from colocam.temporal.presence import Calibration, calibrate
from colocam.training.loop import Validation
from colocam.types import Levels

THRESHOLDS = np.arange(250) / 250
"""τ = 0, .004, … as published for validation during training."""

GROUND = 0.1
"""Share of a frame's places that its ground must have to be one."""


@dataclass(frozen=True, slots=True)
class Validator:
    """Measures a model on the validation frames.

    Attributes:
        samples: validation frames.
        boxes: true boxes of each frame in model pixels, at least one; None where nobody drew any.
        tags: names of the classes.
        size: side of the model's input in pixels.
        device: where the model is.
        cam: method of the class activation maps that a classifier is judged by.
    """

    samples: Samples
    boxes: list[Boxes] | None
    tags: tuple[str, ...]
    size: int
    device: torch.device
    cam: Cam = "layercam"

    @torch.inference_mode()
    def classifier(self, classifier: Classifier) -> Validation:
        """``best``: the lowest cross-entropy on held-out tags. ``cam``: the best CAMs, where boxes can tell."""
        logits = torch.cat([classifier(frames).logits.float().cpu() for frames, _ in self._batches()])
        classes = self.samples.classes
        loss = float(F.cross_entropy(logits, classes))
        accuracy = float((logits.argmax(1) == classes).float().mean())
        if self.boxes is None:
            return Validation({"best": -loss}, {"loss": loss, "accuracy": accuracy})
        maps = self._maps(cam_mapper(partial(extract, self.cam, classifier), self.size))
        _, corloc = self._choose(maps, self.boxes)
        return Validation({"best": -loss, "cam": corloc}, {"loss": loss, "accuracy": accuracy, "corloc": corloc})

    @torch.inference_mode()
    def localizer(self, mapper: Mapper, epoch: int) -> Validation:
        """``best``: the best CorLoc, where boxes can tell; else the last epoch.

        Tags and maps alone have no better candidate than the last epoch, where the learning rate has come to rest
        (docs/method/tags-only.md). The threshold comes from the maps, or from the boxes.
        """
        maps = self._maps(mapper)
        if self.boxes is None:
            return Validation({"best": float(epoch)}, {"threshold": tags_only_threshold(maps)})
        threshold, corloc = self._choose(maps, self.boxes)
        return Validation({"best": corloc}, {"threshold": threshold, "corloc": corloc})

    @torch.inference_mode()
    def presence(self, classifier: Classifier) -> Calibration | None:
        """Calibrate presence on held-out videos, from their tags: peaks of frames against those of their ground."""
        found = [peak_and_ground(extract("cam", classifier, frames, classes)) for frames, classes in self._batches()]
        peaks, ground = (torch.cat(part).double().cpu().numpy() for part in zip(*found, strict=True))
        return calibrate(peaks, ground[np.isfinite(ground)])

    def _choose(self, maps: Levels, boxes: list[Boxes]) -> tuple[float, float]:
        """The threshold with the best CorLoc, mean over classes, and that CorLoc in percent (as `oracle-global`)."""
        frames = Frames(self.tags, self.samples.classes.numpy(), self.samples.indices.clips.numpy())
        hits = box_hits(maps, boxes, THRESHOLDS)
        means = np.nanmean(frames.class_means(hits), axis=0)
        return best_threshold(hits, frames, THRESHOLDS), 100 * float(means.max())

    def _maps(self, mapper: Mapper) -> Levels:
        return np.concatenate(list(map_batches(mapper, self.samples, self.size, self.device)))

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.samples.batches(self.size, self.device)


def peak_and_ground(cams: Tensor) -> tuple[Tensor, Tensor]:
    """The largest value of each map, and the largest on its ground: away from all that exceeds Otsu's threshold.

    Places beside the object see it, too, so the ground begins one place further.

    Args:
        cams: (B, h, w) before normalisation.

    Returns:
        (B,) and (B,); not-a-number where there is too little ground.
    """
    maps = min_max(cams)
    levels, defined = otsu_levels(maps)
    above = (to_8bit(maps) > levels[:, None, None]).to(cams.dtype)
    ground = F.max_pool2d(above[:, None], 3, stride=1, padding=1)[:, 0] == 0
    enough = defined & (ground.float().mean((1, 2)) >= GROUND)
    highest = torch.where(ground, cams, -torch.inf).amax((1, 2))
    return cams.amax((1, 2)), torch.where(enough, highest, torch.nan)
