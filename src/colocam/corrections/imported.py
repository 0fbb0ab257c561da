"""What a label file says, before it is compared with predictions: videos with tracks of boxes."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.types import Box, Float64Array

UNUSABLE = Box(np.nan, np.nan, np.nan, np.nan)
"""A label that was left out: the frame shows something, so it must not count as a frame without an object."""

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class LeftOut(Counter[str]):
    """What was left out and why: a sentence → how often."""

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [f"left out, {count}×: {reason}" for reason, count in self.items()]


@dataclass(frozen=True, slots=True)
class ImportedTrack:
    """Boxes of one object at k key frames; between two of them a box moves in a straight line.

    Attributes:
        tag: its class.
        at: (k,) ascending, where the key frames are: see :class:`ImportedVideo`.
        boxes: (k, 4) in pixels, or as shares of the frame's size; NaN for a label that was left out.
        shown: (k,) the object is seen at the key frame.
        follows: (k,) it is seen from the key frame up to the next one, or to the end.
    """

    tag: str
    at: Float64Array
    boxes: Float64Array = field(repr=False)
    shown: Flags = field(repr=False)
    follows: Flags = field(repr=False)

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
    """The labels of one video.

    Attributes:
        names: what the file calls the video, e.g. its file name and the name of the task; none: it does not say.
        tracks: the boxes.
        listed: frames that were labelled, with or without a box; None: the whole video.
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
    """A box of one frame."""

    at: float
    tag: str
    box: Box


def tracks_of_frames(labels: Iterable[FrameLabel]) -> list[ImportedTrack]:
    """Labels of single frames as tracks: all boxes are key frames, and none is seen in another frame.

    The i-th box of a class in each frame belongs to one track.
    """
    rank: Counter[tuple[float, str]] = Counter()
    groups: defaultdict[tuple[str, int], list[FrameLabel]] = defaultdict(list)
    for label in labels:
        groups[label.tag, rank[label.at, label.tag]].append(label)
        rank[label.at, label.tag] += 1
    tracks = []
    for (tag, _), own in groups.items():
        own.sort(key=lambda label: label.at)
        seen = np.ones(len(own), bool)
        at, boxes = (
            np.array([label.at for label in own], np.float64),
            np.array([label.box for label in own], np.float64),
        )
        tracks.append(ImportedTrack(tag, at, boxes, seen, ~seen))
    return tracks
