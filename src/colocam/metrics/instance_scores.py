"""How many of a frame's objects are found: recall and precision on frames with several true boxes.

As in MaxBoxAccV2 a box is right from an IoU of 0.3, 0.5 or 0.7, and the mean of the three is the figure; but each true
box counts, not the frame, and a predicted box finds one of them at most (the one-to-one matching with the most pairs).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.boxes.assignment import assign
from colocam.boxes.extract import largest_boxes
from colocam.boxes.instance_boxes import instance_boxes
from colocam.boxes.quantize import checked_levels
from colocam.metrics.box_accuracy import V2_OVERLAPS
from colocam.metrics.hits import Numbers, check_counts, inclusive_iou

SEVERAL = 2
"""True boxes from which a frame counts here."""
GRID: npt.NDArray[np.float64] = np.arange(1, 20) / 20
"""Thresholds of which ``oracle-global`` takes the best."""
ROUNDING = 1e-9
"""A box that was scaled to the frame and back may have lost this much of its IoU."""


def matches(predicted: Sequence[Numbers], true: Sequence[Numbers]) -> npt.NDArray[np.int64]:
    """Count the true boxes of each frame that a predicted box of their own finds, at each IoU of MaxBoxAccV2.

    Args:
        predicted: for each of N frames (p, 4), p ≥ 0.
        true: for each frame (k, 4), k ≥ 0; coordinates are pixels, counted inclusively.

    Returns:
        (3, N).
    """
    check_counts(len(predicted), true)
    counts = np.zeros((len(V2_OVERLAPS), len(true)), np.int64)
    for i, (found, there) in enumerate(zip(predicted, true, strict=True)):
        boxes, others = (np.asarray(one, np.float64).reshape(-1, 4) for one in (found, there))
        overlaps = inclusive_iou(boxes[:, None], others[None])
        for j, least in enumerate(V2_OVERLAPS):
            counts[j, i] = len(assign(overlaps >= least - ROUNDING))
    return counts


def instance_scores(predicted: Sequence[Numbers], true: Sequence[Numbers]) -> dict[str, Any]:
    """``recall`` and ``precision`` over all boxes, in percent, by IoU and their mean; precision is None without a box.

    Arguments as in :func:`matches`.
    """
    found = matches(predicted, true).sum(1)

    def shares(boxes: int) -> dict[str, float] | None:
        if not boxes:
            return None
        each = 100 * found / boxes
        return {**dict(zip(map(str, V2_OVERLAPS), each.tolist(), strict=True)), "mean": float(each.mean())}

    return {"recall": shares(sum(map(len, true))), "precision": shares(sum(map(len, predicted)))}


def instances_of_maps(
    maps: Mapping[str, npt.NDArray[np.uint8]], true: Sequence[Numbers], thresholds: Mapping[str, float]
) -> dict[str, Any] | None:
    """Scores of each method's blobs (``instance_boxes``) on the frames with several true boxes; None without any.

    Args:
        maps: method → (N, S, S) in 8 bits.
        true: (k, 4) of each frame in map pixels, truncated to whole numbers as published.
        thresholds: method → τ chosen without boxes.

    Returns:
        ``frames``, ``boxes`` and ``methods``: for each method the blobs at its τ (``tags-only``), at the best of
        ``GRID`` on these very frames (``oracle-global``, by mean recall), and the published single box at its τ
        (``one box``), each with ``threshold``, ``recall`` and ``precision``.
    """
    several = np.array([len(boxes) >= SEVERAL for boxes in true], bool)
    if not several.any():
        return None
    whole = [np.asarray(boxes).astype(np.int64) for boxes in true if len(boxes) >= SEVERAL]
    methods = {}
    for name, levels in maps.items():
        kept = checked_levels(levels[several])
        given = thresholds[name]
        grid = [_at(kept, whole, float(threshold)) for threshold in GRID]
        box, found = largest_boxes(kept, given)
        single = [one[None] if there else one[:0].reshape(0, 4) for one, there in zip(box, found, strict=True)]
        methods[name] = {
            "tags-only": _at(kept, whole, given),
            "oracle-global": max(grid, key=lambda cell: cell["recall"]["mean"]),
            "one box": {"threshold": given, **instance_scores(single, whole)},
        }
    return {"frames": len(whole), "boxes": sum(map(len, whole)), "methods": methods}


def _at(levels: npt.NDArray[np.uint8], true: Sequence[Numbers], threshold: float) -> dict[str, Any]:
    boxes = [found.boxes for found in instance_boxes(levels, threshold)]
    return {"threshold": threshold, **instance_scores(boxes, true)}
