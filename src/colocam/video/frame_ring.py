"""Frames in shared memory: a decoder process fills slots, the reading process lends them to whoever uses the frames."""

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.types import Image, VideoFrame
from colocam.utils.child_processes import map_file, memory_file
from colocam.video.resizing import resize_into

Bytes = npt.NDArray[np.uint8]
"""(N,) memory."""

RING_BYTES = 2**28
"""Bytes of all slots; one slot may be larger."""
MOST_SLOTS = 256
"""As many as frames wait for their boxes, so that few must be copied."""
KEPT = 0.25
"""Share of the slots that is never lent, so that the decoder always has some to fill."""


@lru_cache(16)
def black_image(height: int, width: int) -> Image:
    """An image (H, W, 3) that takes no memory and cannot be changed."""
    return np.broadcast_to(np.uint8(0), (height, width, 3))


class FrameRing:
    """Slots of equal length in shared memory.

    A frame is lent where enough slots are left, which copies nothing: its slot is free again when the last array that
    uses its memory is gone. Otherwise the frame is copied, so that who keeps many frames never stops the decoder.

    Attributes:
        slot_bytes: length of a slot.
        slots: number of slots.
    """

    def __init__(self, file: int, slot_bytes: int) -> None:
        """``file`` is from :meth:`file_for` and is closed here."""
        self._bytes = np.frombuffer(map_file(file), np.uint8)
        self.slot_bytes = slot_bytes
        self.slots = len(self._bytes) // slot_bytes
        self._free = deque(range(self.slots))
        self._given: set[int] = set()  # to the decoder, which fills them

    @staticmethod
    def file_for(slot_bytes: int) -> int:
        """Shared memory for slots of a length, to be opened on both sides; the caller closes it."""
        return memory_file(slot_bytes * max(1, min(MOST_SLOTS, RING_BYTES // slot_bytes)))

    def memory(self, slot: int, length: int) -> Bytes:
        """The first ``length`` bytes of a slot, to be filled."""
        if not (0 <= slot < self.slots and 0 < length <= self.slot_bytes):
            raise ValueError(f"slot {slot} of {self.slots} cannot hold {length} bytes")
        begin = slot * self.slot_bytes
        return self._bytes[begin : begin + length]

    def give(self, ahead: int) -> list[int]:
        """Free slots for the decoder to fill, so that it has at most ``ahead`` of them."""
        slots = [self._free.popleft() for _ in range(min(len(self._free), ahead - len(self._given)))]
        self._given.update(slots)
        return slots

    def take(self, slot: int, length: int) -> Bytes:
        """The first ``length`` bytes of a slot that the decoder filled."""
        memory = self.memory(slot, length)
        self._given.remove(slot)
        if len(self._free) + len(self._given) < max(1, KEPT * self.slots):
            copied = memory.copy()
            self._free.append(slot)
            return copied
        return np.asarray(_Lent(memory, partial(self._free.append, slot)))

    def take_back(self) -> None:
        """Take back the slots that the decoder has, when it no longer fills them."""
        self._free.extend(self._given)
        self._given.clear()


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


class _Lent:
    """Memory of an array, as NumPy reads it (``__array_interface__``); says when no array uses it any more."""

    def __init__(self, memory: Bytes, free: Callable[[], None]) -> None:
        self._memory, self._free = memory, free
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._free()
