"""What a label file says, before it is compared with predictions: videos with tracks of boxes.

These types hold what :class:`colocam.labels.labelled_videos.LabelledVideo` cannot: key frames between which boxes move,
frames that a player counts by time, boxes as shares of a frame whose size is not known, and videos of an unknown name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from colocam.labels.labelled_videos import LabelledVideo
from colocam.labels.table import Integers
from colocam.types import Box, Float64Array

UNUSABLE = Box(np.nan, np.nan, np.nan, np.nan)
"""A label that was left out: the frame shows something, so it must not count as a frame without an object."""

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

    @classmethod
    def of_keys(cls, tag: str, keys: Mapping[int, tuple[Box, bool, bool]]) -> Self:
        """The track of these key frames: index → box, ``shown``, ``follows``."""
        boxes, shown, follows = zip(*(keys[at] for at in sorted(keys)), strict=True)
        return cls(tag, np.array(sorted(keys), float), np.array(boxes, float), np.array(shown), np.array(follows))

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
        at = np.array([label.at for label in own], np.float64)
        boxes = np.array([label.box for label in own], np.float64)
        tracks.append(ImportedTrack(tag, at, boxes, seen, ~seen))
    return tracks


def named(names: Sequence[str], known: Sequence[LabelledVideo]) -> list[LabelledVideo]:
    """The videos that ``names`` mean: by their table or their file, with or without the ending.

    Of several of one name it is those that an export calls so, or those in the folders that a name states.
    """
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    asked = {name.casefold() for name in (*names, *(path.name for path in paths))}
    found = [other for other in known if not asked.isdisjoint(_own_names(other))]
    tails = [path.parts for path in paths if len(path.parts) > 1]
    by_name = [other for other in found if other.name in names]
    return by_name or [other for other in found if any(_ends_with(other, tail) for tail in tails)] or found


def _own_names(known: LabelledVideo) -> set[str]:
    file = PurePosixPath(known.source.file)
    own = (known.name, known.source.file, file.name, file.stem, str(known.source.path))
    return {name.casefold() for name in own}


def _ends_with(known: LabelledVideo, tail: tuple[str, ...]) -> bool:
    """Whether the path of a video ends with these folders and this name, with or without the ending of the file."""
    paths = [known.source.path, PurePosixPath(known.source.stated_path)]
    return any(tail == one.parts[-len(tail) :] for path in paths for one in (path, path.with_suffix("")))
