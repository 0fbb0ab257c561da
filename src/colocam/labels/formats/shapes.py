"""Key frames of a track, and the outline of a mask."""

import cv2
import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array


def sparse_keyframes(
    frames: npt.NDArray[np.int64], boxes: npt.NDArray[np.float64], tolerance: float
) -> npt.NDArray[np.int64]:
    """Choose key frames by the rule of Douglas and Peucker, with the error of each corner at its own frame.

    Args:
        frames: (n,) ascending.
        boxes: (n, 4).
        tolerance: pixels by which an interpolated corner may be off.

    Returns:
        Indices into ``frames``, sorted; the first and the last are among them.
    """
    keep = np.zeros(len(frames), bool)
    keep[[0, -1]] = True
    waiting = [(0, len(frames) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        inside = slice(first + 1, last)
        share = ((frames[inside] - frames[first]) / (frames[last] - frames[first]))[:, None]
        error = np.abs(boxes[first] + share * (boxes[last] - boxes[first]) - boxes[inside]).max(axis=1)
        worst = int(error.argmax())
        if error[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            waiting += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


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
