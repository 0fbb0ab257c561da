"""What label files say of videos, before it is compared with localization tables.

An :class:`ImportedVideo` holds what a :class:`colocam.labels.labeled_videos.LabeledVideo` cannot: key frames between
which boxes move, frames that a player counts by time, boxes as shares of a frame whose size is not known, and videos of
an unknown name.

Tests: tests/labels/test_from_cvat.py, tests/labels/test_from_label_studio.py, tests/labels/test_apart.py.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from colocam.labels.table import Integers
from colocam.types import Box, Float64Array

UNUSABLE = Box(np.nan, np.nan, np.nan, np.nan)
"""A label that was left out: the frame shows something, so it must not count as a frame without an object."""

Flags = npt.NDArray[np.bool_]
KeyFrame = tuple[Box, bool, bool]
"""Box, ``shown`` and ``follows`` of an :class:`ImportedTrack` at a key frame."""


@dataclass(frozen=True, slots=True)
class ImportedTrack:
    """Boxes of one object at k key frames; between two of them a box moves in a straight line.

    Attributes:
        tag: its class.
        at: (k,) ascending, where the key frames are: see :class:`ImportedVideo`.
        boxes: (k, 4) in pixels, or as shares of the frame's size; NaN for a label that was left out.
        shown: (k,) the object is seen at the key frame.
        follows: (k,) it is seen from the key frame up to the next one, or to the end.
        number: of the object in its video, from 1; None: the file does not tell objects apart.
    """

    tag: str
    at: Float64Array
    boxes: Float64Array = field(repr=False)
    shown: Flags = field(repr=False)
    follows: Flags = field(repr=False)
    number: int | None = None

    @classmethod
    def of_keys(cls, tag: str, keys: Mapping[float, KeyFrame], number: int | None = None) -> Self:
        """The track of these key frames, by their index."""
        order = sorted(keys)
        boxes, shown, follows = zip(*(keys[at] for at in order), strict=True)
        return cls(tag, np.array(order, float), np.array(boxes, float), np.array(shown), np.array(follows), number)

    def sample(self, when: Float64Array) -> tuple[Float64Array, Flags, Flags]:
        """Boxes (n, 4) at times (n,), whether the object is seen then (n,), and whether it is a key frame (n,)."""
        last = np.searchsorted(self.at, when, side="right") - 1
        before, after = last.clip(0), (last + 1).clip(max=len(self.at) - 1)
        key = (last >= 0) & (self.at[before] == when)
        seen = np.where(key, self.shown[before], (last >= 0) & self.follows[before])
        length = self.at[after] - self.at[before]
        # After the last key frame, and before one that hides the object, the box stays where it is.
        moves = (length > 0) & self.shown[after]
        share = np.divide(when - self.at[before], length, out=np.zeros(len(when)), where=moves)
        step = np.where(share[:, None] > 0, self.boxes[after] - self.boxes[before], 0)
        return self.boxes[before] + share[:, None] * step, seen, key


@dataclass(frozen=True, slots=True)
class ImportedVideo:
    """The labels of one video. Only this type says what a file of another tool calls it.

    Attributes:
        names: what the file calls the video, e.g. its file name and the name of the task; none: it does not say.
        tracks: the boxes.
        listed: frames that were labeled, with or without a box; None: the whole video.
        frames: number of frames that the file states; None: it does not.
        size: width and height that the file states; None: it does not.
        rate: key frames count frames of this constant rate, as a player by time has them; None: frames of the video.
        relative: boxes are shares of the frame's size.
    """

    names: tuple[str, ...]
    tracks: list[ImportedTrack] = field(repr=False)
    listed: Integers | None = field(default=None, repr=False)
    frames: int | None = None
    size: tuple[int, int] | None = None
    rate: float | None = None
    relative: bool = False

    @property
    def title(self) -> str:
        """What messages call the video."""
        return repr(self.names[0]) if self.names else "a video without a name"


class FrameLabel(NamedTuple):
    """A box of one frame; ``number`` is that of its object in the video, from 1, None where it is not known."""

    at: float
    tag: str
    box: Box
    number: int | None = None


def tracks_of_frames(labels: Iterable[FrameLabel]) -> list[ImportedTrack]:
    """Labels of single frames as tracks: all boxes are key frames, and none is seen in another frame.

    Without numbers, the i-th box of a class in each frame belongs to one track.
    """
    ranks: Counter[tuple[float, str, int | None]] = Counter()
    groups: defaultdict[tuple[str, int | None, int], dict[float, KeyFrame]] = defaultdict(dict)
    for at, tag, box, number in labels:
        rank = ranks[at, tag, number]
        ranks[at, tag, number] += 1
        groups[tag, number, rank][at] = box, True, False
    return [ImportedTrack.of_keys(tag, keys, number) for (tag, number, _), keys in groups.items()]
