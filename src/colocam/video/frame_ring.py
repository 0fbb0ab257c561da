"""Frames in shared memory: a decoder process resizes them and fills slots in turn, the reading process copies them.

Tests: tests/video/test_fence.py, tests/video/test_resizing.py.
"""

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.native import kernels
from colocam.types import Image, VideoFrame
from colocam.utils.child_processes import map_file, memory_file

Bytes = npt.NDArray[np.uint8]
"""(N,) memory."""
Ring = npt.NDArray[np.uint8]
"""(slots, bytes of a slot); slot 0 follows the last."""

RING_BYTES = 2**28
"""Bytes of all slots; one slot may be larger."""
MOST_SLOTS = 256
NO_RING: Ring = np.empty((1, 0), np.uint8)


def ring_file(slot_bytes: int) -> int:
    """Shared memory for slots of a length, to be opened on both sides; the caller closes it."""
    return memory_file(slot_bytes * max(1, min(MOST_SLOTS, RING_BYTES // slot_bytes)))


def open_ring(file: int, slot_bytes: int) -> Ring:
    """The slots of a :func:`ring_file`, which is closed."""
    return np.frombuffer(map_file(file), np.uint8).reshape(-1, slot_bytes)


@lru_cache(16)
def black_image(height: int, width: int) -> Image:
    """An image (H, W, 3) that takes no memory and cannot be changed."""
    return np.broadcast_to(np.uint8(0), (height, width, 3))


class FrameLayout(NamedTuple):
    """What a slot holds of a frame: its resized copy, its image, or one after the other.

    Attributes:
        size: S of the resized copy (S, S, 3); 0 for none.
        images: whether the image (H, W, 3) is there.
    """

    size: int = 0
    images: bool = True

    def length(self, height: int, width: int) -> int:
        """Bytes of a frame."""
        return self.size**2 * 3 + (height * width * 3 if self.images else 0)

    def write(self, image: Image, memory: Bytes) -> None:
        """Write a frame (H, W, 3) into its memory."""
        resized, whole = self._parts(memory, *image.shape[:2])
        if resized is not None:
            resize_into(image, resized)
        if self.images:
            whole[...] = image

    def read(self, memory: Bytes, index: int, pts: float, size: tuple[int, int]) -> VideoFrame:
        """The frame in its memory; ``size`` is (height, width)."""
        resized, image = self._parts(memory, *size)
        return VideoFrame(index, pts, image, resized)

    def _parts(self, memory: Bytes, height: int, width: int) -> tuple[Image | None, Image]:
        first = self.size**2 * 3
        resized = memory[:first].reshape(self.size, self.size, 3) if self.size else None
        if not self.images:
            return resized, black_image(height, width)
        return resized, memory[first:].reshape(height, width, 3)


IMAGES = FrameLayout()


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
