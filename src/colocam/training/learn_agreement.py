"""What a model finds in corrected frames, and how well it agrees with the corrections."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from colocam.config.card import Card
from colocam.config.schema import Frames as FrameSizes
from colocam.maps.mapper import decoder_mapper, map_batches
from colocam.metrics import best_overlaps
from colocam.models.model_file import Model
from colocam.temporal.path import boxes_of_shots
from colocam.temporal.presence import Calibration
from colocam.training.learn_frames import CorrectedFrames, equal_videos
from colocam.training.learn_presence import calibrate_presence, presence_loss
from colocam.training.learn_thresholds import GRID, choose_thresholds, right_at
from colocam.types import Float64Array, Levels


class Observation(NamedTuple):
    """What a network finds in N corrected frames.

    Attributes:
        levels: (N, M, M) 8-bit maps.
        peaks: (N,) peak of each frame's class.
        right: (N, T) how right the box is at each threshold (:func:`right_at`); 0 where the frame shows no object.
    """

    levels: Levels
    peaks: Float64Array
    right: Float64Array

    def part(self, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> "Observation":
        """Some of the frames (N,)."""
        return Observation(self.levels[chosen], self.peaks[chosen], self.right[chosen])


@torch.inference_mode()
def observe(model: Model, frames: CorrectedFrames, sizes: FrameSizes, device: torch.device) -> Observation:
    """Maps of corrected frames, post-processed together with other frames of their clips, and peaks."""
    net, card = model.net.to(device).eval(), model.card
    samples, rows = frames.with_context()
    mapper = decoder_mapper(net, card.color_mean, focus=card.focus_power())
    levels = np.concatenate(list(map_batches(mapper, samples, sizes.crop, device)))[rows]
    peaks = []
    for images, classes in frames.samples.batches(sizes.crop, device):
        peaks.append(net(images).peaks.gather(1, classes[:, None])[:, 0].double().cpu().numpy())
    right, present = np.zeros((len(frames), len(GRID))), frames.present
    right[present] = right_at(levels[present], [boxes for boxes in frames.boxes if len(boxes)], card.chooser)
    return Observation(levels, np.concatenate(peaks), right)


def learnt_card(
    card: Card, seen: Observation, frames: CorrectedFrames, *, threshold: bool, per_class: bool, presence: bool
) -> Card:
    """The card with thresholds and presence that agree best with corrected frames; takes less than a second."""
    with_box, equal = frames.present, equal_videos(frames)
    changes: dict[str, object] = {}
    if threshold and with_box.any():
        classes, weights = frames.classes[with_box], equal.weights[with_box]
        chosen, each = choose_thresholds(seen.right[with_box], classes, weights, len(card.tags), card.threshold)
        changes = {
            "threshold": chosen,
            "threshold_from": "corrections",
            "class_thresholds": each if per_class else None,
        }
    if presence:
        before = None if card.presence is None else Calibration(*card.presence)
        found = calibrate_presence(before, seen.peaks, with_box, equal.weights)
        changes["presence"] = None if found is None else tuple(found)
    return card.model_copy(update=changes)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a model agrees with corrected frames.

    Attributes:
        iou: mean IoU of its boxes with the corrected ones; NaN without a frame with a box.
        corloc: percent of these frames with an IoU of at least 0.5.
        presence_loss: mean cross-entropy of presence; NaN without frames with and without the object.
    """

    iou: float
    corloc: float
    presence_loss: float


def agreement(card: Card, seen: Observation, frames: CorrectedFrames) -> Agreement:
    """Compare the boxes and the presence of a model with corrections."""
    with_box = frames.present
    calibration = None if card.presence is None else Calibration(*card.presence)
    loss = presence_loss(calibration, seen.peaks, with_box)
    if not with_box.any():
        return Agreement(float("nan"), float("nan"), loss)
    overlaps = box_overlaps(card, seen.levels[with_box], frames.part(with_box))
    weights = frames.weights[with_box]
    share = weights / weights.sum()
    return Agreement(float(share @ overlaps), 100 * float(share @ (overlaps >= 0.5)), loss)


def box_overlaps(card: Card, levels: Levels, frames: CorrectedFrames) -> Float64Array:
    """(N,) IoU of the box of each map with the nearest corrected box of its frame; 0 where the model finds none."""
    own = card.class_thresholds or (card.threshold,) * len(card.tags)
    overlaps = np.zeros(len(frames))
    thresholds = np.array([own[tag] for tag in frames.classes.tolist()])
    clips = frames.samples.indices.clips.numpy()
    for threshold in np.unique(thresholds).tolist():
        rows = np.flatnonzero(thresholds == threshold)
        boxes, found = boxes_of_shots(levels[rows], threshold, card.chooser, clips[rows])
        best = best_overlaps(boxes[:, None], [frames.boxes[row] for row in rows.tolist()])[:, 0]
        overlaps[rows] = np.where(found, best, 0.0)
    return overlaps
