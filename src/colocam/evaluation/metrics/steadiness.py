"""Steadiness of boxes over time, before and after smoothing; needs no true boxes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou

SHIFT = 0.5
"""IoU of the boxes of neighbouring frames below which the box counts as shifted."""


class Steadiness(NamedTuple):
    """How boxes change from frame to frame, over all videos.

    Attributes:
        change: mean change between neighbours: √(Δx² + Δy²) / s + |Δ log s|, s = √(width · height).
        jitter: the same mean of second differences, which are 0 for steady motion and steady growth.
        shifts: number of neighbouring pairs with an IoU below :data:`SHIFT`.
        pairs: number of neighbouring frames that both have a box, without a cut between them.
    """

    change: float
    jitter: float
    shifts: int
    pairs: int


def steadiness(
    videos: Sequence[npt.NDArray[np.floating]], cuts: Sequence[npt.NDArray[np.bool_]] | None = None
) -> Steadiness:
    """Measure how steady the boxes of some videos are.

    Args:
        videos: for each video (T, 4) x1, y1, x2, y2 of its frames in order, NaN where there is no box.
        cuts: for each video (T,) whether a frame begins a new shot; None for no cuts.

    Returns:
        means over all videos; 0 without a pair.
    """
    first, second, overlaps = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    for i, boxes in enumerate(videos):
        wide = np.asarray(boxes, np.float64).reshape(-1, 4)
        new_shot: npt.NDArray[np.bool_] = np.zeros(len(wide), bool) if cuts is None else cuts[i]
        seen = np.isfinite(wide.sum(1))
        pair = np.logical_and(seen[1:] & seen[:-1], ~new_shot[1:])
        triple = np.logical_and(pair[1:], pair[:-1])
        centre, log_size = _centre_and_size(wide)
        by = np.exp(-log_size)
        first.append((_length(np.diff(centre, axis=0)) * by[1:] + np.abs(np.diff(log_size)))[pair])
        second.append((_length(np.diff(centre, 2, axis=0)) * by[1:-1] + np.abs(np.diff(log_size, 2)))[triple])
        overlaps.append(iou(wide[1:], wide[:-1])[pair])
    moves, bends, kept = (np.concatenate(parts) for parts in (first, second, overlaps))
    return Steadiness(
        float(moves.mean()) if len(moves) else 0.0,
        float(bends.mean()) if len(bends) else 0.0,
        int((kept < SHIFT).sum()),
        len(kept),
    )


def _centre_and_size(boxes: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(T, 2) centres and (T,) log of √(width · height); a box without area counts as one pixel."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1)
    return (boxes[:, :2] + boxes[:, 2:]) / 2, np.log(sides).mean(1)


def _length(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    length: npt.NDArray[np.float64] = np.hypot(vectors[:, 0], vectors[:, 1])
    return length
