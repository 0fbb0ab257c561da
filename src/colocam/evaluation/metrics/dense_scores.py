"""Scores of boxes in every frame of a shot: overlap, class, jitter and speed; and steadiness without true boxes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.evaluation.metrics.hits import RIGHT
from colocam.types import Box, Float64Array

SHIFT = 0.5
"""IoU of the boxes of neighboring frames below which the box counts as shifted."""


class ShotMeasurements(NamedTuple):
    """What was measured in the frames of one shot, or of several shots together.

    Attributes:
        overlaps: (n,) IoU with the best true box, for each frame with a true box; 0 without a predicted box.
        changes: (p,) 1 − IoU of the boxes of two neighboring frames.
        class_right: (n,) whether the class is right, for each frame with a true box; (0,) if the tag was given.
        switches: whether the class of a frame differs from that of the frame before.
        frames: for each shot the number of frames that were processed.
        seconds: for each shot the time from the file to the boxes.
    """

    overlaps: Float64Array
    changes: Float64Array
    class_right: npt.NDArray[np.bool_]
    switches: npt.NDArray[np.bool_]
    frames: npt.NDArray[np.int64]
    seconds: Float64Array


@dataclass(frozen=True, slots=True)
class DenseScores:
    """Scores of a shot, or means of several shots.

    Attributes:
        corloc: percent of the frames with a true box whose predicted box has an IoU of at least 0.5.
        mean_iou: mean IoU over the same frames, 0–1.
        frames_per_second: from the file to the boxes.
        jitter: mean of 1 − IoU of the boxes of neighboring frames; None without such a pair.
        class_right: percent of the frames with a true box whose class is right; None if the tag was given.
        switches: changes of the class from frame to frame; None if the tag was given.
    """

    corloc: float
    mean_iou: float
    frames_per_second: float
    jitter: float | None = None
    class_right: float | None = None
    switches: float | None = None


def best_iou(found: Box | None, true: Sequence[Box]) -> float:
    """IoU of the predicted box with the best true box, whose corners are pixels that belong to it; 0 without either."""
    return float(iou(np.array(found), np.array(true), inclusive=True).max()) if found and true else 0.0


def neighbor_changes(boxes: Mapping[int, Sequence[Box]]) -> Float64Array:
    """1 − IoU of the boxes of the frames i and i + 1, for each such pair of frames that both have boxes.

    Where there are several boxes, it is the mean over the boxes of the later frame, each with its best IoU.
    """
    seen = sorted(frame for frame, found in boxes.items() if found)
    changes = [
        1 - float(iou(np.array(boxes[b])[:, None], np.array(boxes[a])[None], inclusive=True).max(1).mean())
        for a, b in pairwise(seen)
        if b == a + 1
    ]
    return np.array(changes, np.float64)


def pool(shots: Sequence[ShotMeasurements]) -> ShotMeasurements:
    """The measurements of several shots as those of one; no pair of frames is formed between shots."""
    return ShotMeasurements(*map(np.concatenate, zip(*shots, strict=True)))


def score_shot(measured: ShotMeasurements) -> DenseScores:
    """Scores of measurements with at least one true box."""
    class_right = mean_or_none(100.0 * measured.class_right)
    return DenseScores(
        corloc=100 * float((measured.overlaps >= RIGHT).mean()),
        mean_iou=float(measured.overlaps.mean()),
        frames_per_second=float(measured.frames.sum() / max(measured.seconds.sum(), 1e-9)),
        jitter=mean_or_none(measured.changes),
        class_right=class_right,
        switches=None if class_right is None else int(measured.switches.sum()),
    )


def mean_scores(shots: Sequence[DenseScores]) -> DenseScores:
    """Mean of each score over shots; a shot without a value is left out of that mean."""
    means: dict[str, Any] = {
        one.name: mean_or_none([getattr(shot, one.name) for shot in shots]) for one in fields(DenseScores)
    }
    return DenseScores(**means)


def mean_or_none(values: Sequence[float | None] | npt.NDArray[np.floating]) -> float | None:
    """Mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


class Steadiness(NamedTuple):
    """How boxes change from frame to frame, over all videos.

    Attributes:
        change: mean change between neighbors: √(Δx² + Δy²) / s + |Δ log s|, s = √(width · height).
        jitter: the same mean of second differences, which are 0 for steady motion and steady growth.
        shifts: number of neighboring pairs with an IoU below :data:`SHIFT`.
        pairs: number of neighboring frames that both have a box, without a cut between them.
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
        center, log_size = _center_and_size(wide)
        by = np.exp(-log_size)
        first.append((_length(np.diff(center, axis=0)) * by[1:] + np.abs(np.diff(log_size)))[pair])
        second.append((_length(np.diff(center, 2, axis=0)) * by[1:-1] + np.abs(np.diff(log_size, 2)))[triple])
        overlaps.append(iou(wide[1:], wide[:-1])[pair])
    moves, bends, kept = (np.concatenate(parts) for parts in (first, second, overlaps))
    return Steadiness(
        float(moves.mean()) if len(moves) else 0.0,
        float(bends.mean()) if len(bends) else 0.0,
        int((kept < SHIFT).sum()),
        len(kept),
    )


def _center_and_size(boxes: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(T, 2) centers and (T,) log of √(width · height); a box without area counts as one pixel."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1)
    return (boxes[:, :2] + boxes[:, 2:]) / 2, np.log(sides).mean(1)


def _length(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    length: npt.NDArray[np.float64] = np.hypot(vectors[:, 0], vectors[:, 1])
    return length
