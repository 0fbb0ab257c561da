"""The published box rule: bounding rectangle of the largest contour of the thresholded 8-bit map."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.quantize import Maps, checked_levels
from colocam.errors import ArgumentError
from colocam.native import kernels
from colocam.types import Levels
from colocam.utils.device import threads

Matrix: TypeAlias = cv2.typing.MatLike
Box: TypeAlias = tuple[int, int, int, int]
Boxes = npt.NDArray[np.int16]


def largest_boxes(maps: Maps, threshold: float) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Box of the largest foreground contour of each map.

    The foreground is ``levels > ⌊τ · max(levels)⌋`` with ``levels = ⌊255·map⌋``. Of all contours, the one with the
    largest polygon area counts (through pixel centers, holes filled; among equals the first that OpenCV lists, which
    starts furthest down). Its bounding rectangle x, y, w, h gives x, y, x+w, y+h, clipped to width−1 and height−1.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        threshold: τ in 0–1, relative to the maximum of each map.

    Returns:
        boxes (B, 4) x1, y1, x2, y2 in map pixels, 0, 0, 0, 0 without foreground; found (B,).
    """
    check_threshold(threshold)
    levels = checked_levels(maps)
    boxes = [largest_box(level, int(threshold * int(level.max()))) for level in levels]
    has_box = np.array([box is not None for box in boxes], bool)
    return np.array([box or (0, 0, 0, 0) for box in boxes], np.float32).reshape(-1, 4), has_box


def check_threshold(threshold: float) -> None:
    """Refuse a threshold τ outside 0–1."""
    if not 0 <= threshold <= 1:
        raise ArgumentError("threshold", f"must be in 0–1, got {threshold}")


def scale_boxes(
    boxes: npt.NDArray[np.floating] | npt.NDArray[np.integer[Any]],
    from_size: tuple[int, int],
    to_size: tuple[int, int],
) -> npt.NDArray[np.float32]:
    """Scale boxes (..., 4) x1, y1, x2, y2 from a frame of (width, height) to another; each axis by its own factor."""
    x, y = to_size[0] / from_size[0], to_size[1] / from_size[1]
    return (np.asarray(boxes, np.float64) * (x, y, x, y)).astype(np.float32)


def find_contours(level: Levels, cut: int, mode: int = cv2.RETR_TREE) -> tuple[list[Matrix], list[float], Matrix]:
    """All contours of the mask ``level > cut`` of a map (H, W) in OpenCV's order, their areas, and their hierarchy.

    A contour that OpenCV lists later starts further up. The area is that of the polygon through pixel centers.
    """
    contours, hierarchy = cv2.findContours((level > cut).view(np.uint8), mode, cv2.CHAIN_APPROX_SIMPLE)
    return list(contours), [cv2.contourArea(one) if len(one) > 2 else 0.0 for one in contours], hierarchy


def contour_box(contour: Matrix, shape: tuple[int, ...]) -> Box:
    """Bounding rectangle x, y, x+w, y+h of a contour in a map of (height, width), clipped to its last pixel."""
    x, y, w, h = cv2.boundingRect(contour)
    return x, y, min(x + w, shape[1] - 1), min(y + h, shape[0] - 1)


def largest_box(level: Levels, cut: int) -> Box | None:
    """Box of the largest contour of ``level > cut``; None without foreground."""
    # Holes, and what lies in them, are never larger than the contour around them; noisy maps have thousands.
    contours, areas, _ = find_contours(level, cut, cv2.RETR_EXTERNAL)
    return contour_box(contours[areas.index(max(areas))], level.shape) if contours else None


def mask_of_box(
    level: npt.NDArray[np.uint8], threshold: float, box: Sequence[float], size: tuple[int, int]
) -> npt.NDArray[np.bool_] | None:
    """Foreground inside the contour that gave a box, in an image of another size.

    The outline is scaled smoothly: a pixel belongs to the mask where the interpolated 0/1 blob exceeds one half.

    Args:
        level: (h, w) uint8 levels of one map.
        threshold: τ in 0–1, relative to the maximum of the map.
        box: the bounding rectangle of a contour at τ, as :func:`largest_boxes` or ``candidate_boxes`` has it; of
            several contours with that rectangle the largest counts.
        size: (width, height) of the mask.

    Returns:
        (height, width) bool; None where no contour has that box, or nothing of it is left at that size.
    """
    cut = int(threshold * int(level.max()))
    contours, areas, _ = find_contours(level, cut)
    matching = [i for i, contour in enumerate(contours) if contour_box(contour, level.shape) == tuple(box)]
    if not matching:
        return None
    filled = np.zeros(level.shape, np.float32)
    cv2.drawContours(filled, [contours[max(matching, key=areas.__getitem__)]], -1, 1.0, cv2.FILLED)
    scaled: npt.NDArray[np.bool_] = cv2.resize(filled * (level > cut), size, interpolation=cv2.INTER_LINEAR) > 0.5
    return scaled if scaled.any() else None


def boxes_at_levels(maps: Maps) -> Boxes:
    """Boxes of the largest contour of each mask ``levels > t`` with ``levels = ⌊255·map⌋``, for t = 0 … 255.

    In C (``native/levels.h``) one flood fill and one component tree per map take a tenth of the time of a contour
    search for each level.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.

    Returns:
        (B, 256, 4) x1, y1, x2, y2 in map pixels as ``largest_boxes`` has them; 0, 0, 0, 0 from the map's maximum on,
        where no pixel is left.
    """
    levels = checked_levels(maps)
    boxes = np.zeros((len(levels), 256, 4), np.int16)
    sweep = sweep_by_opencv if kernels is None else kernels.sweep_levels
    workers = max(1, min(threads(), len(levels)))
    with ThreadPoolExecutor(workers) as pool:  # C and OpenCV run without Python's global lock
        list(pool.map(sweep, np.array_split(levels, workers), np.array_split(boxes, workers)))
    return boxes


def sweep_by_opencv(levels: Levels, boxes: Boxes) -> None:
    """Fill ``boxes`` (B, 256, 4), zeros before, from ``levels`` (B, H, W)."""
    for level, boxes_of_level in zip(levels, boxes, strict=True):
        for cut in range(int(level.max())):
            boxes_of_level[cut] = largest_box(level, cut)
