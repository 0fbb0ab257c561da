"""Resize frames to what a network reads."""

from collections.abc import Callable
from functools import cache

import cv2
import numpy as np

from colocam.types import Image

try:
    from colocam.native import kernels as _kernels  # type: ignore[attr-defined]
except ImportError:  # built without a C compiler
    _kernels = None

THREADS_OF_OPENCV = 4
"""OpenCV divides an image among its threads. With so many it is about as quick as the function in C, which uses one."""


def resize_into(image: Image, resized: Image) -> None:
    """Resize an image (H, W, 3) into the array ``resized`` (S, S, 3), by area averages; the aspect ratio is ignored.

    The bytes are those of OpenCV's ``INTER_AREA``, whoever computes them: OpenCV, or the C module in a quarter of the
    CPU time.
    """
    height, width, rows, columns = *image.shape[:2], *resized.shape[:2]
    smaller = rows <= height and columns <= width
    by_whole_factors = height % rows == 0 and width % columns == 0  # OpenCV has a quick way for these
    alone = cv2.getNumThreads() < THREADS_OF_OPENCV
    if smaller and not by_whole_factors and alone and (average := _average()) is not None:
        average(image, resized)
    else:
        _by_opencv(image, resized)


def _by_opencv(image: Image, resized: Image) -> None:
    cv2.resize(image, resized.shape[1::-1], dst=resized, interpolation=cv2.INTER_AREA)


@cache
def _average() -> Callable[[Image, Image], None] | None:
    """The function in C; None where OpenCV rounds otherwise, as with the fused operations of some processors."""
    average: Callable[[Image, Image], None] | None = getattr(_kernels, "resizing_area", None)
    if average is None:
        return None
    image = np.random.default_rng(0).integers(0, 256, (96, 64, 3), np.uint8)
    found, expected = np.empty((2, 64, 32, 3), np.uint8)  # 1.5 × 2 pixels to one: a sixth of the sums end with .5
    average(image, found)
    _by_opencv(image, expected)
    return average if np.array_equal(found, expected) else None
