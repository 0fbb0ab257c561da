"""Outline of a mask as one polygon."""

import cv2
import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array

WITHIN = 0.25
"""Where a point lies in its pixel: programs that truncate and programs that round find the same pixel."""


def polygon_of(mask: npt.NDArray[np.bool_]) -> Float64Array:
    """Points (n, 2) x, y of the outline of a mask (H, W) that is not empty, in pixels, through its outermost pixels.

    Holes are filled. Parts are joined by lines there and back between their nearest points, since a segment is one
    polygon in formats such as YOLO's.
    """
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    parts = sorted((contour[:, 0].astype(np.float64) for contour in contours), key=len, reverse=True)
    joined = parts[0]
    for part in parts[1:]:
        distances = np.abs(joined[:, None] - part).sum(-1)
        here, there = np.unravel_index(int(distances.argmin()), distances.shape)
        around = np.concatenate([part[there:], part[: there + 1]])
        joined = np.concatenate([joined[: here + 1], around, joined[here:]])
    if len(joined) < 3:  # a single row or column of pixels
        joined = np.concatenate([joined, joined[::-1], joined])[:4]
    return joined + WITHIN
