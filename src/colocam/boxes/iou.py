"""Intersection over union of boxes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array
from colocam.utils.jit import compiled

Numbers = npt.NDArray[np.floating[Any]] | npt.NDArray[np.integer[Any]]


def iou(a: Numbers, b: Numbers, *, inclusive: bool = False) -> Float64Array:
    """IoU of boxes (..., 4) x1, y1, x2, y2; leading shapes are broadcast.

    Args:
        a: boxes.
        b: boxes.
        inclusive: corners are pixels that belong to the box, so that it is x2 − x1 + 1 wide (the published protocol);
            otherwise it is x2 − x1 wide.

    Returns:
        (...) in 0–1; 0 for boxes that do not overlap, have no area, or have a corner that is not a number.
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    first, second = (np.array(np.broadcast_to(boxes, shape), np.float64).reshape(-1, 4) for boxes in (a, b))
    overlaps = np.zeros(shape[:-1])
    _fill(first, second, float(inclusive), overlaps.reshape(-1))
    return overlaps


@compiled
def pair_iou(a: Float64Array, b: Float64Array, border: float) -> float:
    """IoU of two boxes (4,) in which each side is ``border`` longer than the difference of its corners.

    For compiled loops, and for single pairs, where NumPy's calls take longer than the arithmetic.
    """
    width = min(a[2], b[2]) - max(a[0], b[0]) + border
    height = min(a[3], b[3]) - max(a[1], b[1]) + border
    if not (width > 0 and height > 0):
        return 0.0
    common = width * height
    area_a = (a[2] - a[0] + border) * (a[3] - a[1] + border)
    area_b = (b[2] - b[0] + border) * (b[3] - b[1] + border)
    union = area_a + area_b - common
    return common / union if union > 0 else 0.0  # a corner that is not a number gives 0, too


@compiled
def _fill(a: Float64Array, b: Float64Array, border: float, overlaps: Float64Array) -> None:
    for i in range(len(a)):
        overlaps[i] = pair_iou(a[i], b[i], border)
