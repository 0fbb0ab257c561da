"""Resize frames to what a network reads."""

import cv2

from colocam.native import kernels
from colocam.types import Image


def resize_into(image: Image, resized: Image) -> None:
    """Resize an image (H, W, 3) into the array ``resized`` (S, S, 3), by area averages; the aspect ratio is ignored.

    The C module adds in the order of OpenCV's ``INTER_AREA``, in a quarter of the CPU time. Its bytes are the same on
    all processors, and those of OpenCV on x86; where OpenCV fuses multiplications and additions, as on ARM, some of its
    bytes differ by one. Without the C module OpenCV resizes.
    """
    height, width, rows, columns = *image.shape[:2], *resized.shape[:2]
    smaller = rows <= height and columns <= width
    by_whole_factors = height % rows == 0 and width % columns == 0  # OpenCV adds integers, which is quick and exact
    if smaller and not by_whole_factors and kernels is not None:
        kernels.resize_area(image, resized)
    else:
        cv2.resize(image, (columns, rows), dst=resized, interpolation=cv2.INTER_AREA)
