"""Resize frames to what a network reads."""

import cv2

from colocam.types import Image


def resize_into(image: Image, resized: Image) -> None:
    """Resize an image (H, W, 3) into the array ``resized`` (S, S, 3), by area averages; the aspect ratio is ignored."""
    cv2.resize(image, resized.shape[1::-1], dst=resized, interpolation=cv2.INTER_AREA)
