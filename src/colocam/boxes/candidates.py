"""Boxes that a frame's object may have: contours of its map at several thresholds, each with a score."""

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import contour_box, contours_of
from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ColocamError

Floats = npt.NDArray[np.float64]

FACTORS = (1.0, 0.5, 0.7, 1.4, 2.0)
"""Thresholds relative to the model's own, which comes first: of equal boxes the first stays."""
MOST = 24
"""Candidates a frame; those of the lowest score are left out, never the published box."""
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


def _candidates(level: npt.NDArray[np.uint8], threshold: float) -> Candidates:
    highest, least = int(level.max()), LEAST_AREA * level.size
    found: dict[tuple[int, int, int, int], float] = {}
    for factor in FACTORS:
        tau = min(threshold * factor, 1.0)
        contours = sorted(contours_of(level > int(tau * highest)), key=cv2.contourArea, reverse=True)
        if not found and not contours:
            break
        for place, contour in enumerate(contours):
            if place == 0 or cv2.contourArea(contour) >= least:
                found.setdefault(contour_box(contour, level.shape), tau)
    boxes = np.array(list(found), np.float64).reshape(-1, 4)
    scores = _scores(level, threshold, boxes)
    others = np.argsort(-scores[1:], kind="stable")[: MOST - 1] + 1
    kept = np.sort(np.append(others, 0)) if len(boxes) else others
    return Candidates(boxes[kept], scores[kept], np.array(list(found.values()))[kept])


def _scores(level: npt.NDArray[np.uint8], threshold: float, boxes: Floats) -> Floats:
    """(k,) weighted overlap with the foreground, by sums over rectangles."""
    mask = level > int(threshold * int(level.max()))
    if not mask.any():
        return np.zeros(len(boxes))
    heat = np.where(mask, level, np.uint8(0))
    total = float(heat.sum(dtype=np.int64))
    x1, y1, x2, y2 = np.add(boxes, (0, 0, 1, 1)).astype(np.int64).T

    def inside(values: npt.NDArray[np.uint8]) -> Floats:
        sums = cv2.integral(values, sdepth=cv2.CV_64F)
        area: Floats = sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]
        return area

    common, empty = inside(heat), inside((~mask).view(np.uint8))
    scores: Floats = common / (total + total / mask.sum() * empty)
    return scores
