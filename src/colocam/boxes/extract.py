"""The published box rule: bounding rectangle of the largest contour of the thresholded 8-bit map."""

from collections.abc import Sequence

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
    contours = contours_of(mask)
    return contour_box(max(contours, key=cv2.contourArea), mask.shape) if contours else None


def mask_of_box(
    level: npt.NDArray[np.uint8], threshold: float, box: Sequence[float], size: tuple[int, int]
) -> npt.NDArray[np.bool_] | None:
    """Foreground inside the contour that a box was made of, in a picture of another size.

    The outline is scaled smoothly: a pixel belongs to the mask where the interpolated 0/1 blob exceeds a half.

    Args:
        level: (h, w) uint8 levels of one map.
        threshold: τ in 0–1, relative to the maximum of the map.
        box: the bounding rectangle of a contour at τ, as :func:`largest_boxes` or ``candidate_boxes`` has it; of
            several contours with that rectangle the largest counts.
        size: (width, height) of the mask.

    Returns:
        (height, width) bool; None where no contour has that box, or nothing of it is left at that size.
    """
    mask = level > int(threshold * int(level.max()))
    own = [contour for contour in contours_of(mask) if contour_box(contour, mask.shape) == tuple(box)]
    if not own:
        return None
    filled = np.zeros(mask.shape, np.float32)
    cv2.drawContours(filled, [max(own, key=cv2.contourArea)], -1, 1.0, cv2.FILLED)
    scaled: npt.NDArray[np.bool_] = cv2.resize(filled * mask, size, interpolation=cv2.INTER_LINEAR) > 0.5
    return scaled if scaled.any() else None


def contours_of(mask: npt.NDArray[np.bool_]) -> Sequence[cv2.typing.MatLike]:
    """All contours of a mask (H, W), outer ones and those of holes, in the order that decides ties."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    return contours


def contour_box(contour: cv2.typing.MatLike, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Bounding rectangle x, y, x+w, y+h of a contour in a map of (height, width), clipped to its last pixel."""
    x, y, w, h = cv2.boundingRect(contour)
    return x, y, min(x + w, shape[1] - 1), min(y + h, shape[0] - 1)
