"""How many of a frame's objects are found: recall and precision on frames with several true boxes.

As in MaxBoxAccV2, a box is right from an IoU of 0.3, 0.5 or 0.7, and the mean of the three is the figure. But each true
box counts, not the frame, and a predicted box finds at most one of them (the one-to-one matching with the most pairs).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import instance_boxes
from colocam.boxes.extract import largest_boxes
from colocam.boxes.iou import Numbers, best_pairs, iou
from colocam.boxes.quantize import checked_levels
from colocam.evaluation.metrics.hits import V2_OVERLAPS, by_overlap
from colocam.types import Levels

SEVERAL = 2
"""True boxes from which a frame counts here."""
GRID: npt.NDArray[np.float64] = np.arange(1, 20) / 20
"""Thresholds of which ``oracle-global`` takes the best."""
ROUNDING = 1e-9
"""IoU that a box may have lost when it was scaled to the frame and back."""
Shares = Mapping[str, float]
"""Share by least IoU, "0.3", "0.5" and "0.7", and their "mean"."""


@dataclass(frozen=True, slots=True)
class InstanceScores:
    """How many of the true boxes are found, each by a predicted box of its own.

    Attributes:
        recall: share of the true boxes that are found.
        precision: share of the predicted boxes that find one; None without predicted boxes.
        threshold: τ of the maps; None where boxes were given.
    """

    recall: Shares
    precision: Shares | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Instances:
    """Scores on the frames with several true boxes.

    Attributes:
        frames: number of these frames.
        boxes: number of true boxes in them.
        methods: method → way of choosing boxes → scores.
    """

    frames: int
    boxes: int
    methods: Mapping[str, Mapping[str, InstanceScores]]


def matches(predicted: Sequence[Numbers], true: Sequence[Numbers]) -> npt.NDArray[np.int64]:
    """Number of true boxes of each frame that a predicted box of their own finds, at each IoU of MaxBoxAccV2.

    Args:
        predicted: for each of N frames (p, 4), p ≥ 0.
        true: for each frame (k, 4), k ≥ 0; corners are pixels that belong to the box.

    Returns:
        (3, N).
    """
    counts = np.zeros((len(V2_OVERLAPS), len(true)), np.int64)
    for i, (found, there) in enumerate(zip(predicted, true, strict=True)):
        boxes, others = (np.asarray(one, np.float64).reshape(-1, 4) for one in (found, there))
        overlaps = iou(boxes[:, None], others[None], inclusive=True)
        for j, least in enumerate(V2_OVERLAPS):
            right = overlaps >= least - ROUNDING
            counts[j, i] = right[best_pairs(right)].sum()
    return counts


def instance_scores(
    predicted: Sequence[Numbers], true: Sequence[Numbers], threshold: float | None = None
) -> InstanceScores:
    """Recall and precision over all boxes of all frames; arguments as in :func:`matches`."""
    found, given = 100 * matches(predicted, true).sum(1), sum(map(len, predicted))
    recall, precision = by_overlap(found / sum(map(len, true))), by_overlap(found / given) if given else None
    return InstanceScores(recall, precision, threshold)


def instances_of_maps(
    maps: Mapping[str, Levels], true: Sequence[Numbers], thresholds: Mapping[str, float]
) -> Instances | None:
    """Scores of each method's blobs (``instance_boxes``) on the frames with several true boxes; None without any.

    Args:
        maps: method → (N, S, S) in 8 bits.
        true: (k, 4) of each frame in map pixels, truncated to integers as published.
        thresholds: method → τ chosen without boxes.

    Returns:
        for each method the blobs at its τ (``tags-only``), at the best of ``GRID`` on these very frames
        (``oracle-global``, by mean recall), and the published single box at its τ (``one box``).
    """
    several = np.array([len(boxes) >= SEVERAL for boxes in true], bool)
    if not several.any():
        return None
    whole = [np.asarray(boxes).astype(np.int64) for boxes in true if len(boxes) >= SEVERAL]
    methods = {}
    for name, levels in maps.items():
        kept = checked_levels(levels[several])
        given = thresholds[name]
        box, found = largest_boxes(kept, given)
        single = [one[None][: int(there)] for one, there in zip(box, found, strict=True)]
        methods[name] = {
            "tags-only": _at(kept, whole, given),
            "oracle-global": max((_at(kept, whole, float(t)) for t in GRID), key=lambda one: one.recall["mean"]),
            "one box": instance_scores(single, whole, given),
        }
    return Instances(len(whole), sum(map(len, whole)), methods)


def _at(levels: Levels, true: Sequence[Numbers], threshold: float) -> InstanceScores:
    return instance_scores([found.boxes for found in instance_boxes(levels, threshold)], true, threshold)
