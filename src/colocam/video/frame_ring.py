"""Frames in shared memory: a decoder process fills slots, the reading process lends them to whoever uses the frames."""

from collections import deque
from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from colocam.types import Image
from colocam.utils.shared_memory import map_file, memory_file

RING_BYTES = 2**26
"""Bytes of all slots; one slot may be larger."""
MOST_SLOTS = 64
KEPT = 0.25
"""Share of the slots that is never lent, so that the decoder always has some to fill."""


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

    def fill(self, slot: int, image: Image) -> None:
        """Copy an image into a slot."""
        self._view(slot, image.shape)[...] = image

    def give(self) -> list[int]:
        """All free slots, for the decoder to fill."""
        slots = [self._free.popleft() for _ in range(len(self._free))]
        self._given.update(slots)
        return slots

    def take(self, slot: int, shape: tuple[int, ...]) -> Image:
        """The image of a shape in a slot that the decoder filled."""
        view = self._view(slot, shape)
        self._given.remove(slot)
        if len(self._free) + len(self._given) < max(1, KEPT * self.slots):
            image = view.copy()
            self._free.append(slot)
            return image
        return np.asarray(_Lent(view, partial(self._free.append, slot)))

    def take_back(self) -> None:
        """Take back the slots that the decoder has, when it no longer fills them."""
        self._free.extend(self._given)
        self._given.clear()

    def _view(self, slot: int, shape: tuple[int, ...]) -> Image:
        begin, length = slot * self.slot_bytes, prod(shape)
        if not (0 <= slot < self.slots and 0 < length <= self.slot_bytes):
            raise ValueError(f"slot {slot} of {self.slots} cannot hold an image of {shape}")
        return self._bytes[begin : begin + length].reshape(shape)


class _Lent:
    """Memory of an array, as NumPy reads it (``__array_interface__``); says when no array uses it any more."""

    def __init__(self, view: Image, free: Callable[[], None]) -> None:
        self._view, self._free = view, free
        self.__array_interface__ = view.__array_interface__

    def __del__(self) -> None:
        self._free()
