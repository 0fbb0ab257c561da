"""Intersection over union of boxes, and the pairs of boxes with the largest sum of it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array

Numbers = npt.NDArray[np.floating[Any]] | npt.NDArray[np.integer[Any]]
Pairs = tuple[list[int], list[int]]


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
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    low_a, high_a, low_b, high_b = first[..., :2], first[..., 2:], second[..., :2], second[..., 2:]
    if inclusive:
        high_a, high_b = high_a + 1, high_b + 1
    sides = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0)
    size_a, size_b, common = high_a - low_a, high_b - low_b, sides[..., 0] * sides[..., 1]
    union = size_a[..., 0] * size_a[..., 1] + size_b[..., 0] * size_b[..., 1] - common
    overlap: Float64Array = np.divide(common, union, out=np.zeros(union.shape), where=union > 0)
    return overlap


def best_pairs(values: npt.NDArray[np.floating] | npt.NDArray[np.bool_]) -> Pairs:
    """Rows and columns of the min(n, m) pairs of ``values`` (n, m), each row and column once, with the largest sum.

    Shortest augmenting paths (Jonker and Volgenant, 1987): rows are added one by one; each finds the cheapest chain of
    changes that gives it a column. For the few boxes of a frame, where SciPy would be a large dependency for one
    function; rows come in order.
    """
    if values.shape[0] > values.shape[1]:
        columns, rows = best_pairs(values.T)
        order = np.argsort(rows).tolist()
        return [rows[i] for i in order], [columns[i] for i in order]
    count, width = values.shape
    costs = -values.astype(np.float64)
    u, v = np.zeros(count), np.zeros(width + 1)  # the last column stands for "not assigned yet"
    row_of = np.full(width + 1, -1)
    for row in range(count):
        row_of[width], column = row, width
        shortest, before, seen = np.full(width, np.inf), np.full(width, width), np.zeros(width + 1, bool)
        while row_of[column] >= 0:
            seen[column] = True
            at = row_of[column]
            reached = costs[at] - u[at] - v[:width]
            nearer = ~seen[:width] & (reached < shortest)
            shortest[nearer], before[nearer] = reached[nearer], column
            column = int(np.where(seen[:width], np.inf, shortest).argmin())
            step = shortest[column]
            u[row_of[seen]] += step
            v[seen] -= step
            shortest[~seen[:width]] -= step
        while column != width:  # turn the chain around
            row_of[column], column = row_of[before[column]], before[column]
    pairs = sorted((int(row), column) for column, row in enumerate(row_of[:width]) if row >= 0)
    return [row for row, _ in pairs], [column for _, column in pairs]
