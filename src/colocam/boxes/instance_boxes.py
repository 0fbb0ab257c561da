"""Boxes of all objects of a frame: one per blob of the thresholded map."""

import cv2
import numpy as np

from colocam.boxes.candidates import LEAST_AREA, Candidates
from colocam.boxes.extract import check_threshold, contour_box, find_contours
from colocam.boxes.quantize import Maps, checked_levels
from colocam.types import Levels

LEAST_SHARE = 1 / 10
"""Area of a blob relative to the largest blob of its frame, below which it is ignored."""


def instance_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all blobs of ``levels > ⌊τ · max(levels)⌋``, largest first, k = 0 without foreground.

    Blobs are 8-connected, as contours are; a blob within a hole of another counts separately. Blobs smaller than
    ``LEAST_AREA`` of the frame or ``LEAST_SHARE`` of the largest blob are left out, but never the largest. Areas are
    those inside the outline, as in :func:`colocam.boxes.largest_boxes`, whose box is the first. The score is the mean
    foreground probability inside the box.

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
    scores = [level[y1 : y2 + 1, x1 : x2 + 1].mean() / 255 for x1, y1, x2, y2 in corners]
    boxes = np.array(corners, np.float64).reshape(-1, 4)
    return Candidates(boxes, np.array(scores, np.float64), np.full(len(boxes), threshold))
