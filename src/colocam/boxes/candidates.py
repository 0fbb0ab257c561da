"""Candidate boxes of a frame with scores, and the registry of choosers: which of a map's contours is the object.

A chooser gives the candidate boxes of each frame, the chosen one first. The path through a shot
(:mod:`colocam.temporal.path`) then chooses among the eligible ones by the neighboring frames.

>>> CHOOSERS["mine"] = Chooser("my rule", my_rule)                              # doctest: +SKIP
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import Box, check_threshold, contour_box, find_contours, largest_boxes
from colocam.boxes.iou import iou
from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ArgumentError
from colocam.types import Float64Array, Levels
from colocam.utils.extensions import REGISTRIES, unknown

Longs = npt.NDArray[np.integer[Any]]

FACTORS = (1.0, 1.4, 0.5, 0.7, 2.0)
"""Thresholds relative to the model's own, which comes first; of equal boxes the first is kept."""
MOST = 24
"""Candidates per frame; those with the lowest scores are dropped, never the published box."""
LEAST_AREA = 1 / 400
"""Share of the frame's area below which a contour is ignored."""
LEAST_SHARE = 1 / 10
"""Area of a blob relative to the largest blob of its frame, below which it is ignored."""
RING = 1.4
"""Sides of the surroundings of a box, relative to its own."""
SURROUNDINGS = 0.9
"""Weight of the surroundings in :func:`contrasts`."""
SIZE = 0.3
"""Power of the area in it: of two boxes that stand out equally, the larger one is the object more often."""
CONSENSUS_FACTORS: Float64Array = np.geomspace(0.35, 1 / 0.35, 13)
"""f_k of :func:`consensus_boxes`; the middle one is 1."""
SPREAD = 0.5
"""Standard deviation of ln f in the weights."""


class Candidates(NamedTuple):
    """The k candidate boxes of one frame, the chosen box first; k = 0 without foreground.

    Attributes:
        boxes: (k, 4) x1, y1, x2, y2 in map pixels.
        scores: (k,) how well the box explains the map, 0–1.
        thresholds: (k,) τ at which the box was found.
        eligible: number of leading candidates that a path may take; None: those found at the first one's threshold.
    """

    boxes: Float64Array
    scores: Float64Array
    thresholds: Float64Array
    eligible: int | None = None


def candidate_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all contours of maps (B, H, W) at several thresholds around τ, without repetition.

    The first of a frame is the box of :func:`colocam.boxes.largest_boxes`. The score is the overlap of the box R
    with the foreground F = {levels > ⌊τ · max⌋}, each pixel weighted by its level m:
    Σ_{R∩F} m / (Σ_F m + mean_F m · |R∖F|), the weighted form of |R∩F| / |R∪F|.
    """
    check_threshold(threshold)
    thresholds = np.minimum(threshold * np.array(FACTORS), 1.0).tolist()
    return [_candidates(level, thresholds) for level in checked_levels(maps)]


def _candidates(level: Levels, thresholds: list[float]) -> Candidates:
    """Candidates of one map (H, W) at thresholds of which the first is the model's own."""
    highest = int(level.max())
    cuts: dict[int, float] = {}
    for tau in thresholds:
        cuts.setdefault(int(tau * highest), tau)
    found: dict[Box, float] = {}
    if int(thresholds[0] * highest) < highest:
        for cut, tau in cuts.items():
            contours, areas, _ = find_contours(level, cut)
            order = sorted(range(len(contours)), key=areas.__getitem__, reverse=True)
            for i in [i for i in order if areas[i] >= LEAST_AREA * level.size] or order[:1]:
                found.setdefault(contour_box(contours[i], level.shape), tau)
    boxes = np.array(list(found), np.float64).reshape(-1, 4)
    origins = np.array(list(found.values()))
    scores = explained(level, thresholds[0], boxes)
    best = np.sort(np.argsort(-scores[1:], kind="stable")[: MOST - 1] + 1)
    kept = np.concatenate([[0], best])[: len(boxes)]
    return Candidates(boxes[kept], scores[kept], origins[kept])


def eligible(candidates: Candidates) -> Candidates:
    """The candidates that a path may take; they come first, so indices stay valid."""
    count = candidates.eligible
    if count is None:
        thresholds = candidates.thresholds.tolist()  # Python numbers are faster than short arrays
        count = sum(one == thresholds[0] for one in thresholds)
    return Candidates(candidates.boxes[:count], candidates.scores[:count], candidates.thresholds[:count])


def explained(level: Levels, threshold: float, boxes: Float64Array) -> Float64Array:
    """Scores (n,) of boxes (n, 4), also of other frames, on a map (H, W), by the rule of :func:`candidate_boxes`.

    Boxes are rounded to pixels. Without foreground the scores are 0.
    """
    highest = int(level.max())
    cut = int(threshold * highest)
    if not len(boxes) or cut >= highest:
        return np.zeros(len(boxes))
    height, width = level.shape
    x1, y1, x2, y2 = np.fmin(np.fmax(np.rint(boxes), 0), (width - 1, height - 1) * 2).astype(np.int64).T
    right, below = x2 + 1, y2 + 1

    def add_up(value: int, how: int) -> tuple[int, Longs]:
        """The sum of the foreground over the map and over each box, by an integral image."""
        sums = cv2.integral(cv2.threshold(level, cut, value, how)[1])
        return int(sums[-1, -1]), sums[below, right] - sums[y1, right] - sums[below, x1] + sums[y1, x1]

    total, common = add_up(0, cv2.THRESH_TOZERO)
    count, covered = add_up(1, cv2.THRESH_BINARY)
    scores: Float64Array = common / (total + total / count * ((right - x1) * (below - y1) - covered))
    return scores


def instance_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all blobs of ``levels > ⌊τ · max(levels)⌋``, that of the highest contrast first; k = 0 without any.

    Blobs are 8-connected, as contours are; a blob within a hole of another counts separately. Blobs smaller than
    ``LEAST_AREA`` of the frame or ``LEAST_SHARE`` of the largest blob are left out, but never the largest. Areas are
    those inside the outline, as in :func:`colocam.boxes.largest_boxes`. Scores are those of :func:`contrasts`.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        threshold: τ in 0–1, relative to the maximum of each map.
    """
    check_threshold(threshold)
    return [_blobs(level, threshold) for level in checked_levels(maps)]


def _blobs(level: Levels, threshold: float) -> Candidates:
    """The blobs of one map (H, W)."""
    contours, areas, hierarchy = find_contours(level, int(threshold * int(level.max())), cv2.RETR_CCOMP)
    outer = [i for i in range(len(contours)) if hierarchy[0, i, 3] < 0]
    outer.sort(key=areas.__getitem__, reverse=True)
    least = max(LEAST_AREA * level.size, LEAST_SHARE * areas[outer[0]]) if outer else 0.0
    kept = [i for i in outer if areas[i] >= least] or outer[:1]
    corners = [contour_box(contours[i], level.shape) for i in kept]
    boxes = np.array(corners, np.float64).reshape(-1, 4)
    scores = contrasts(level, boxes)
    order = np.argsort(-scores, kind="stable")
    return Candidates(boxes[order], scores[order], np.full(len(boxes), threshold))


def contrasts(level: Levels, boxes: Float64Array) -> Float64Array:
    """How much boxes (n, 4) stand out from their surroundings in a map (H, W), (n,) in 0–1.

    max(0, m − :data:`SURROUNDINGS` · r) · a^:data:`SIZE`, with the mean foreground probability m inside the box, r
    around it (:data:`RING` times as wide and high, without the box; 0 where that leaves the frame), and the box's share
    a of the frame. The mean inside alone would prefer small bright parts of an object, and background that is bright
    everywhere.
    """
    height, width = level.shape
    limits = (width, height) * 2
    sums = cv2.integral(level)
    half = (boxes[:, 2:] - boxes[:, :2]) / 2 * RING
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2

    def add_up(corners: Float64Array) -> tuple[Longs, Longs]:
        """Sum of the levels, and number of pixels, at least one."""
        x1, y1, x2, y2 = np.clip(np.rint(corners), 0, limits).astype(np.int64).T
        x1, y1 = np.minimum(x1, width - 1), np.minimum(y1, height - 1)
        x2, y2 = np.maximum(x2, x1 + 1), np.maximum(y2, y1 + 1)
        return sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1], (x2 - x1) * (y2 - y1)

    inside, area = add_up(boxes)
    whole, both = add_up(np.hstack([middle - half, middle + half]))
    around = (whole - inside) / np.maximum(both - area, 1)
    scores: Float64Array = np.maximum(inside / area - SURROUNDINGS * around, 0) / 255 * (area / level.size) ** SIZE
    return scores


def consensus_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of the largest contours of maps (B, H, W) at thresholds around τ, that which most others agree with first.

    One threshold for all maps is too low where the map fades slowly and too high where it is weak. Let R_k be the box
    of the largest contour at τ_k = f_k τ. Each box has the score

        s_j = Σ_k w_k IoU(R_j, R_k) / Σ_k w_k,      w_k = exp(−½ (ln f_k / SPREAD)²),

    so that a box counts which changes little over a range of thresholds around τ (docs/method/choosers.md).
    """
    check_threshold(threshold)
    levels = checked_levels(maps)
    thresholds = np.minimum(threshold * CONSENSUS_FACTORS, 1.0)
    per_threshold = [largest_boxes(levels, float(one)) for one in thresholds]
    boxes = np.stack([box for box, _ in per_threshold], axis=1).astype(np.float64)  # (B, T, 4)
    weights = np.exp(-0.5 * (np.log(CONSENSUS_FACTORS) / SPREAD) ** 2) * np.stack(
        [there for _, there in per_threshold], axis=1
    )
    overlaps = iou(boxes[:, :, None], boxes[:, None])
    scores = (overlaps * weights[:, None]).sum(2) / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    return [_ranked(*one, thresholds) for one in zip(boxes, scores, weights > 0, strict=True)]


def _ranked(boxes: Float64Array, scores: Float64Array, there: np.ndarray, thresholds: Float64Array) -> Candidates:
    """The different boxes of one frame by score; of equal ones the first."""
    order = np.flatnonzero(there)[np.argsort(-scores[there], kind="stable")]
    _, first = np.unique(boxes[order], axis=0, return_index=True)
    kept = order[np.sort(first)]
    return Candidates(boxes[kept], scores[kept], thresholds[kept], len(kept))


class Chooser(NamedTuple):
    """A rule that finds the object's box in a map.

    Attributes:
        title: what help and reports print.
        candidates: (maps (B, H, W) as floats in 0–1 or 8-bit levels, τ) → the candidates of each map.
        by_shot: ``evaluate`` lets the frames of a shot choose together; false: each frame by itself, as published.
    """

    title: str
    candidates: Callable[[Maps, float], list[Candidates]]
    by_shot: bool = True


CHOOSERS: dict[str, Chooser] = {
    "largest": Chooser("largest contour at τ, as published", candidate_boxes, by_shot=False),
    "consensus": Chooser("consensus of the thresholds around τ", consensus_boxes),
}
REGISTRIES["colocam.boxes.CHOOSERS"] = CHOOSERS


def find_chooser(name: str) -> Chooser:
    """The chooser of that name."""
    if name not in CHOOSERS:
        raise ArgumentError("chooser", f"{name}{unknown(name, list(CHOOSERS))}")
    return CHOOSERS[name]
