"""The published box rule: bounding rectangle of the largest contour of the thresholded 8-bit map."""

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ColocamError


def largest_boxes(maps: Maps, threshold: float) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Box of the largest foreground contour of each map.

    The foreground is ``levels > ⌊τ · max(levels)⌋`` with ``levels = ⌊255·map⌋``. Of all contours the one with the
    largest polygon area counts (through pixel centres, holes filled; among equals the first that OpenCV lists, which
    starts furthest down). Its bounding rectangle x, y, w, h gives x, y, x+w, y+h, clipped to width−1 and height−1.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        threshold: τ in 0–1, relative to the maximum of each map.

    Returns:
        boxes (B, 4) x1, y1, x2, y2 in map pixels, 0, 0, 0, 0 without foreground; found (B,).
    """
    if not 0 <= threshold <= 1:
        raise ColocamError(f"the threshold must lie in 0–1, not {threshold}")
    levels = checked_levels(maps)
    boxes = np.zeros((len(levels), 4), np.float32)
    found = np.zeros(len(levels), bool)
    for i, level in enumerate(levels):
        box = box_of_mask(level > int(threshold * int(level.max())))
        if box is not None:
            boxes[i], found[i] = box, True
    return boxes, found


def box_of_mask(mask: npt.NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
    """Bounding rectangle (see ``largest_boxes``) of the largest contour of a mask (H, W), None for an empty mask."""
    contour = _largest_contour(mask)
    if contour is None:
        return None
    x, y, w, h = cv2.boundingRect(contour)
    height, width = mask.shape
    return x, y, min(x + w, width - 1), min(y + h, height - 1)


def largest_mask(level: npt.NDArray[np.uint8], threshold: float, size: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
    """Foreground inside the contour whose box :func:`largest_boxes` gives, in a picture of another size.

    The outline is scaled smoothly: a pixel belongs to the mask where the interpolated 0/1 blob exceeds a half.

    Args:
        level: (h, w) uint8 levels of one map.
        threshold: τ in 0–1, relative to the maximum of the map.
        size: (width, height) of the mask.

    Returns:
        (height, width) bool; None where there is no foreground, or none of it is left at that size.
    """
    mask = level > int(threshold * int(level.max()))
    contour = _largest_contour(mask)
    if contour is None:
        return None
    filled = np.zeros(mask.shape, np.float32)
    cv2.drawContours(filled, [contour], -1, 1.0, cv2.FILLED)
    scaled: npt.NDArray[np.bool_] = cv2.resize(filled * mask, size, interpolation=cv2.INTER_LINEAR) > 0.5
    return scaled if scaled.any() else None


def _largest_contour(mask: npt.NDArray[np.bool_]) -> cv2.typing.MatLike | None:
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    return max(contours, key=cv2.contourArea) if contours else None
