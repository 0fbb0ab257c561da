"""Which frames have a right box at every threshold, and measures besides CorLoc.

These are top-k classes, MaxBoxAcc, PxAP (average precision of pixels, where masks exist), and average precision and
calibration of presence.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import boxes_at_levels
from colocam.boxes.iou import Numbers, iou
from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ColocamError

RIGHT = 0.5
"""IoU from which a box is right."""
V2_OVERLAPS = (0.3, 0.5, 0.7)
"""Least IoUs of MaxBoxAccV2 (Choe et al., 2020)."""
PUBLISHED_THRESHOLDS: npt.NDArray[np.float64] = np.arange(1000) / 1000
"""τ = 0, .001, … .999, the grid of the published figures."""
BINS = 1000
"""Scores are binned in steps of .001; a score of 1 has a bin of its own."""


def top_k(logits: npt.NDArray[np.floating], tags: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.bool_]:
    """Whether the tag (N,) is among the k classes with the highest logits (N, C).

    A tie counts against the tag: a classifier with equal logits for all classes is never right.
    """
    tag_logits = np.take_along_axis(logits, tags[:, None], axis=1)
    right: npt.NDArray[np.bool_] = (logits >= tag_logits).sum(1) <= k
    return right


def max_box_acc(hits: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Share of right frames in percent at the best threshold, by least IoU, and their ``mean``.

    Args:
        hits: (3, N, T) at each IoU of ``V2_OVERLAPS``; the second gives MaxBoxAcc.
    """
    return by_overlap(100 * hits.mean(1).max(1))


def by_overlap(each: npt.NDArray[np.float64]) -> dict[str, float]:
    """Values (3,) at the IoUs of ``V2_OVERLAPS`` by name, and their ``mean``."""
    return {**dict(zip(map(str, V2_OVERLAPS), each.tolist(), strict=True)), "mean": float(each.mean())}


def box_hits(
    maps: Maps, boxes: Sequence[Numbers], thresholds: Sequence[float] | npt.NDArray[np.floating]
) -> npt.NDArray[np.bool_]:
    """Whether the box of each map is right, at each threshold, by the published protocol.

    A frame is right if the box of the largest contour of ``levels > ⌊τ · max(levels)⌋`` (see
    ``colocam.boxes.largest_boxes``) has an IoU of at least 0.5 with any of its true boxes. Coordinates count as pixels,
    inclusively: width = x2 − x1 + 1; true boxes are truncated to whole numbers.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        boxes: for each map its true boxes (k, 4), k ≥ 1, x1, y1, x2, y2 in map pixels.
        thresholds: (T,) values of τ in 0–1.

    Returns:
        (B, T).
    """
    levels = checked_levels(maps)
    return hits_of_overlaps(best_overlaps(boxes_at_levels(levels), boxes), levels.max((1, 2), initial=0), thresholds)


def hits_of_overlaps(
    overlaps: npt.NDArray[np.float64],
    maxima: npt.NDArray[np.uint8],
    thresholds: Sequence[float] | npt.NDArray[np.floating],
    least: float | Sequence[float] = RIGHT,
) -> npt.NDArray[np.bool_]:
    """Whether the box of each map is right at each threshold, from its IoU at each level.

    A mask depends on ⌊τ·max⌋ alone, so 256 overlaps per map serve any number of thresholds.

    Args:
        overlaps: (B, 256) IoU of the box of ``levels > t`` at t = 0 … 255.
        maxima: (B,) highest level of each map.
        thresholds: (T,) values of τ in 0–1.
        least: IoU from which a box is right; several may be given.

    Returns:
        (B, T); for a sequence of n values of ``least`` (n, B, T).
    """
    at = (np.asarray(thresholds, np.float64) * maxima[:, None].astype(np.float64)).astype(np.int64)
    reached = np.take_along_axis(overlaps, at, axis=1) >= np.asarray(least, np.float64)[..., None, None]
    return np.asarray(reached, bool)


def frame_overlaps(boxes: Numbers, found: npt.NDArray[np.bool_], true: Sequence[Numbers]) -> npt.NDArray[np.float64]:
    """IoU of the one box of each frame by :func:`best_overlaps`, (N,): 0 without a box, NaN without the object.

    Args:
        boxes: (N, 4).
        found: (N,) whether the frame has a box.
        true: for each frame its true boxes (k, 4), k = 0 where the object is absent.
    """
    present = np.array([len(there) > 0 for there in true], bool)
    overlaps = np.full(len(true), np.nan)
    right = best_overlaps(boxes[present][:, None], [there for there in true if len(there)])[:, 0]
    overlaps[present] = np.where(found[present], right, 0.0)
    return overlaps


def best_overlaps(predicted: Numbers, true: Sequence[Numbers]) -> npt.NDArray[np.float64]:
    """IoU of each predicted box with the best of its frame's true boxes; corners are pixels that belong to the box.

    Args:
        predicted: (B, L, 4), L boxes per frame.
        true: for each frame (k, 4), k ≥ 1; truncated to whole numbers.

    Returns:
        (B, L) in 0–1.
    """
    best = [
        iou(boxes[:, None], np.asarray(there).astype(np.int64)[None], inclusive=True).max(1)
        for boxes, there in zip(predicted, true, strict=True)
    ]
    return np.array(best, np.float64).reshape(predicted.shape[:2])


def average_precision(scores: npt.NDArray[np.floating], present: npt.NDArray[np.bool_]) -> float:
    """Σ precision · Δrecall from the highest score down, 0–1; equal scores count as one step.

    Args:
        scores: (N,) higher means present.
        present: (N,) the truth.
    """
    values, at = np.unique(scores, return_inverse=True)
    return pxap(np.stack([np.bincount(at[present == one], minlength=len(values)) for one in (False, True)])) / 100


def calibration_error(probabilities: npt.NDArray[np.floating], present: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Σ n_b/N · |mean probability − share of present frames| over equal bins of 0–1 (ECE); 0 is perfect.

    Args:
        probabilities: (N,) of presence.
        present: (N,) the truth.
        bins: number of bins.
    """
    at = np.minimum((probabilities * bins).astype(int), bins - 1)
    surplus = np.bincount(at, probabilities - present, minlength=bins)
    return float(np.abs(surplus).sum() / len(present))


def pixel_histograms(
    maps: npt.NDArray[np.floating], masks: npt.NDArray[np.integer] | npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count background and foreground pixels by score.

    Args:
        maps: (B, H, W) in 0–1.
        masks: (B, H, W) 0 background, 1 foreground, anything else is ignored.

    Returns:
        (2, BINS + 1), which can be added up over batches.
    """
    bins = np.floor(maps.astype(np.float64) * BINS).astype(np.int64)
    return np.stack([np.bincount(bins[masks == value], minlength=BINS + 1) for value in (0, 1)])


def pxap(histograms: npt.NDArray[np.int64]) -> float:
    """Σ precision · Δrecall over thresholds from the highest score down, in percent.

    Args:
        histograms: (2, n) background and foreground pixels by score, ascending.
    """
    false, true = np.cumsum(histograms[:, ::-1], axis=1)
    if not true[-1]:
        raise ColocamError("masks have no foreground pixel: PxAP is not defined")
    precision = true / np.maximum(true + false, 1)
    return 100 * float(np.sum(precision * np.diff(true, prepend=0)) / true[-1])
