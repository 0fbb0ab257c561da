"""Frames in a segmenter's square input, as SAM does it: the longest side fills the square, the rest is padding."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.types import Float32Array, Float64Array, Image, Levels
from colocam.utils.device import parallel_map

PADDING = (124, 116, 104)
"""ImageNet's mean colour: 0 after normalisation, as SAM pads."""


class Square(NamedTuple):
    """B frames in squares, each in the upper left corner of its own.

    Attributes:
        images: (B, side, side, 3) RGB.
        sizes: (B, 2) width and height of the frames.
        inside: (B, 2) width and height of the frames in their squares.
    """

    images: Levels
    sizes: npt.NDArray[np.int64]
    inside: npt.NDArray[np.int64]

    @property
    def scales(self) -> Float64Array:
        """(B, 2) pixels of the square per pixel of the frame, along x and y."""
        return self.inside / self.sizes


def squares(images: Sequence[Image], side: int) -> Square:
    """Fit frames (H, W, 3), each of its own size, into squares."""
    sizes = np.array([image.shape[1::-1] for image in images]).reshape(-1, 2)
    inside = np.maximum(np.rint(sizes * (side / sizes.max(1, keepdims=True, initial=1))), 1).astype(np.int64)
    filled = np.empty((len(images), side, side, 3), np.uint8)
    parallel_map(_fit, images, filled, inside.tolist())
    return Square(filled, sizes, inside)


def _fit(image: Image, square: Levels, inside: tuple[int, int]) -> None:
    width, height = inside
    way = cv2.INTER_AREA if width < image.shape[1] else cv2.INTER_LINEAR
    cv2.resize(image, (width, height), square[:height, :width], interpolation=way)
    square[height:] = square[:height, width:] = PADDING


def maps_in_squares(levels: Levels, square: Square, cells: int) -> Levels:
    """Maps (B, h, w), each stretched over its frame, on a grid of (cells, cells) over the square; 0 in the padding."""
    placed = np.zeros((len(levels), cells, cells), np.uint8)
    scales = square.inside * (cells / square.images.shape[1]) / levels.shape[:0:-1]
    parallel_map(_warp, levels, placed, scales.tolist())
    return placed


def mask_in_frame(logits: Float32Array, size: tuple[int, int], inside: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """The mask (H, W) of a frame where interpolated logits are positive.

    Args:
        logits: (cells, cells) over the square; a frame's part is ``inside`` (width, height) in cells.
        size: (W, H) of the frame.
        inside: may be fractions of cells.
    """
    width, height = size
    full = np.empty((height, width), np.float32)
    _warp(logits, full, (width / inside[0], height / inside[1]), cv2.BORDER_REPLICATE)
    mask: npt.NDArray[np.bool_] = full > 0
    return mask


def _warp(
    source: cv2.typing.MatLike, out: cv2.typing.MatLike, scale: tuple[float, float], border: int = cv2.BORDER_CONSTANT
) -> None:
    """Interpolate ``source`` at the pixels of ``out``, of which ``scale`` make one of the source along x and y."""
    x, y = 1 / scale[0], 1 / scale[1]
    back = np.array([[x, 0, (x - 1) / 2], [0, y, (y - 1) / 2]])  # centres of pixels are at half numbers
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(source, back, out.shape[1::-1], out, flags, border)
