"""Boxes of all objects of a frame: one per blob of the thresholded map."""

import numpy as np

from colocam.boxes.candidates import LEAST_AREA, Candidates
from colocam.boxes.contours import HOLE, Bytes, box_of_contour, follow_contours, scratch
from colocam.boxes.extract import check_threshold
from colocam.boxes.quantize import Maps, checked_levels
from colocam.types import Float64Array, Levels
from colocam.utils.jit import compiled

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
    levels = checked_levels(maps)
    found = []
    for level in levels:
        boxes = _blobs(level, float(threshold), LEAST_AREA * level.size)
        found.append(Candidates(boxes, _means(level, boxes), np.full(len(boxes), threshold)))
    return found


@compiled
def _blobs(level: Bytes, threshold: float, least: float) -> Float64Array:
    """Boxes (k, 4) of the blobs of at least ``least`` pixels and of the largest, by area; equals in OpenCV's order."""
    space = scratch(*level.shape)
    _, count = follow_contours(level, int(threshold * level.max()), space)
    outer = np.empty(count, np.int64)
    blobs = 0
    for at in range(count - 1, -1, -1):
        if space.table[at, HOLE] == 0:
            outer[blobs] = at
            blobs += 1
    outer = outer[:blobs]
    outer = outer[np.argsort(-space.areas[outer], kind="mergesort")]
    boxes = np.empty((blobs, 4))
    kept = 0
    for blob in outer:
        if kept == 0 or space.areas[blob] >= max(2 * least, LEAST_SHARE * space.areas[outer[0]]):
            x1, y1, x2, y2 = box_of_contour(space.table[blob], *level.shape)
            boxes[kept] = np.array([x1, y1, x2, y2], np.float64)
            kept += 1
    return boxes[:kept].copy()


def _means(level: Levels, boxes: Float64Array) -> Float64Array:
    """(k,) mean of a map inside boxes whose corners are pixels that belong to them, 0–1."""
    corners = boxes.astype(np.int64)
    return np.array([level[y1 : y2 + 1, x1 : x2 + 1].mean() / 255 for x1, y1, x2, y2 in corners], np.float64)
