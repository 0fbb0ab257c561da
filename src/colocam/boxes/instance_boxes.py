"""All objects of a frame: the blobs of the thresholded map, each with its own box."""

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import LEAST_AREA, Candidates
from colocam.boxes.extract import contour_box
from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ColocamError
from colocam.types import Float64Array

LEAST_SHARE = 1 / 10
"""Area of a blob relative to the largest of its frame below which it is a splinter."""


def instance_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all blobs of ``levels > ⌊τ · max(levels)⌋``, largest first, k = 0 without foreground.

    Blobs are 8-connected, as contours are; a blob within a hole of another is one of its own. Those smaller than
    ``LEAST_AREA`` of the frame or ``LEAST_SHARE`` of the largest blob are left out, never the largest itself; areas
    are those inside the outline, as in :func:`colocam.boxes.largest_boxes`, whose box is the first. The score is the
    mean foreground probability inside the box.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        threshold: τ in 0–1, relative to the maximum of each map.
    """
    if not 0 <= threshold <= 1:
        raise ColocamError(f"the threshold must lie in 0–1, not {threshold}")
    return [_instances(level, threshold) for level in checked_levels(maps)]


def _instances(level: npt.NDArray[np.uint8], threshold: float) -> Candidates:
    mask = level > int(threshold * int(level.max()))
    # two levels: outlines of blobs, also of those within holes, and below them the outlines of holes
    contours, tree = cv2.findContours(mask.view(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    outer = [contour for contour, (*_, parent) in zip(contours, tree[0], strict=True) if parent < 0] if contours else []
    outer.sort(key=cv2.contourArea, reverse=True)
    areas = np.array([cv2.contourArea(contour) for contour in outer])
    least = max(LEAST_AREA * level.size, LEAST_SHARE * areas.max(initial=0))
    kept = [contour for place, contour in enumerate(outer) if place == 0 or areas[place] >= least]
    boxes = np.array([contour_box(contour, level.shape) for contour in kept], np.float64).reshape(-1, 4)
    return Candidates(boxes, _means(level, boxes), np.full(len(boxes), threshold))


def _means(level: npt.NDArray[np.uint8], boxes: Float64Array) -> Float64Array:
    """(k,) mean of a map inside boxes whose corners are pixels that belong to them, 0–1."""
    corners = boxes.astype(np.int64)
    return np.array([level[y1 : y2 + 1, x1 : x2 + 1].mean() / 255 for x1, y1, x2, y2 in corners], np.float64)
