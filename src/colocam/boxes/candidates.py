"""Boxes that a frame's object may have: contours of its map at several thresholds, each with a score."""

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import contour_box
from colocam.boxes.quantize import Levels, Maps, checked_levels
from colocam.errors import ColocamError

Floats = npt.NDArray[np.float64]

FACTORS = (1.0, 0.5, 0.7, 1.4, 2.0)
"""Thresholds relative to the model's own, which comes first: of equal boxes the first stays."""
MOST = 24
"""Candidates a frame; those of the lowest score are left out, never the published box."""
EXACT = 2**31 // 255
"""Pixels whose levels a 32-bit number adds up."""
LEAST_AREA = 1 / 400
"""Share of the frame below which a contour is noise."""


class Candidates(NamedTuple):
    """What may be the object in one frame; k candidates, the published box first, k = 0 without foreground.

    Attributes:
        boxes: (k, 4) x1, y1, x2, y2 in map pixels.
        scores: (k,) how well the box explains the map, 0–1.
        thresholds: (k,) τ at which the box was found.
    """

    boxes: Floats
    scores: Floats
    thresholds: Floats


def candidate_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all contours of maps (B, H, W) at several thresholds around τ, without repetition.

    The first of a frame is the box of :func:`colocam.boxes.largest_boxes`. The score is the overlap of the box R
    with the foreground F = {levels > ⌊τ · max⌋}, each pixel weighted by its heat m relative to the map's maximum:
    Σ_{R∩F} m / (Σ_F m + mean_F m · |R∖F|), the weighted twin of |R∩F| / |R∪F|.
    """
    if not 0 <= threshold <= 1:
        raise ColocamError(f"the threshold must lie in 0–1, not {threshold}")
    return [_candidates(level, threshold) for level in checked_levels(maps)]


def _candidates(level: Levels, threshold: float) -> Candidates:
    highest, least = int(level.max()), LEAST_AREA * level.size
    found: dict[tuple[int, int, int, int], float] = {}
    seen: set[int] = set()
    for factor in FACTORS:
        tau = min(threshold * factor, 1.0)
        cut = int(tau * highest)
        if cut in seen:
            continue
        seen.add(cut)
        _, mask = cv2.threshold(level, cut, 1, cv2.THRESH_BINARY)
        contours, _ = cv2.findContours(mask, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
        if not found and not contours:
            break
        areas = [(cv2.contourArea(contour), contour) for contour in contours]
        areas.sort(key=lambda one: one[0], reverse=True)
        for place, (area, contour) in enumerate(areas):
            if place == 0 or area >= least:
                found.setdefault(contour_box(contour, level.shape), tau)
    boxes = np.array(list(found), np.float64).reshape(-1, 4)
    scores = _scores(level, int(threshold * highest), boxes)
    thresholds = np.array(list(found.values()))
    if len(boxes) <= MOST:
        return Candidates(boxes, scores, thresholds)
    others = np.argsort(-scores[1:], kind="stable")[: MOST - 1] + 1
    kept = np.sort(np.append(others, 0))
    return Candidates(boxes[kept], scores[kept], thresholds[kept])


def _scores(level: Levels, cut: int, boxes: Floats) -> Floats:
    """(k,) weighted overlap with the foreground, levels above ``cut``, by sums over rectangles."""
    if not len(boxes):
        return np.zeros(0)
    _, heat = cv2.threshold(level, cut, 0, cv2.THRESH_TOZERO)
    _, mask = cv2.threshold(level, cut, 1, cv2.THRESH_BINARY)
    x1, y1, x2, y2 = np.add(boxes, (0, 0, 1, 1)).astype(np.int64).T
    depth = cv2.CV_32S if level.size < EXACT else cv2.CV_64F

    def inside(values: cv2.typing.MatLike) -> tuple[Floats, float]:
        """Sums over the boxes and over all."""
        sums = cv2.integral(values, sdepth=depth)
        area = (sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]).astype(np.float64)
        return area, float(sums[-1, -1])

    (common, total), (covered, count) = inside(heat), inside(mask)
    scores: Floats = common / (total + total / count * ((x2 - x1) * (y2 - y1) - covered))
    return scores
