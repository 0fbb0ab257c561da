"""Candidate boxes of a frame: the contours of its map at several thresholds, each with a score."""

from typing import NamedTuple

import cv2
import numpy as np

from colocam.boxes.extract import check_threshold, contour_box, find_contours
from colocam.boxes.quantize import Maps, checked_levels
from colocam.types import Float64Array, Levels

FACTORS = (1.0, 1.4, 0.5, 0.7, 2.0)
"""Thresholds relative to the model's own, which comes first; of equal boxes the first is kept."""
MOST = 24
"""Candidates per frame; those with the lowest scores are dropped, never the published box."""
LEAST_AREA = 1 / 400
"""Share of the frame's area below which a contour is ignored."""


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
    found: dict[tuple[int, int, int, int], float] = {}
    if int(thresholds[0] * highest) < highest:
        for cut, tau in cuts.items():
            contours, areas, _ = find_contours(level, cut)
            order = sorted(range(len(contours)), key=areas.__getitem__, reverse=True)
            for i in [i for i in order if areas[i] >= LEAST_AREA * level.size] or order[:1]:
                found.setdefault(contour_box(contours[i], level.shape), tau)
    boxes, origins = np.array(list(found), np.float64).reshape(-1, 4), np.array(list(found.values()))
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
    levels_above = cv2.integral(cv2.threshold(level, cut, 0, cv2.THRESH_TOZERO)[1], sdepth=cv2.CV_64F)
    pixels_above = cv2.integral((level > cut).view(np.uint8), sdepth=cv2.CV_64F)
    x1, y1, x2, y2 = np.clip(np.nan_to_num(np.rint(boxes)), 0, (width - 1, height - 1) * 2).astype(np.int64).T

    def inside(sums: Float64Array) -> Float64Array:
        within: Float64Array = sums[y2 + 1, x2 + 1] - sums[y1, x2 + 1] - sums[y2 + 1, x1] + sums[y1, x1]
        return within

    total, mean = levels_above[-1, -1], levels_above[-1, -1] / pixels_above[-1, -1]
    empty = (x2 + 1 - x1) * (y2 + 1 - y1) - inside(pixels_above)
    return inside(levels_above) / (total + mean * empty)
