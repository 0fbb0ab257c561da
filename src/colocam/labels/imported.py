"""What a label file says, before it is compared with predictions: videos with tracks of boxes."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.labels.labelled_videos import LabelledVideo
from colocam.labels.table import BEYOND
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
        at = np.array([label.at for label in own], np.float64)
        boxes = np.array([label.box for label in own], np.float64)
        tracks.append(ImportedTrack(tag, at, boxes, seen, ~seen))
    return tracks


def without_faults(
    video: ImportedVideo,
    left_out: LeftOut,
    *,
    classes: Collection[str] | None,
    frames: int | None,
    size: tuple[int, int] | None,
) -> ImportedVideo:
    """The labels that are possible; the others are counted in ``left_out``.

    Args:
        video: labels in pixels.
        left_out: gets what was left out.
        classes: known classes; None: all are.
        frames: number of frames of the video; None: unknown.
        size: width and height of its frames; None: unknown.
    """
    limit = np.inf if frames is None or video.rate is not None else frames
    tracks = []
    for track in video.tracks:
        if np.isnan(track.boxes).all():  # left out already
            tracks.append(track)
        elif not track.tag or (classes is not None and track.tag not in classes):
            named = f"class {track.tag!r} is unknown" if track.tag else "it has no class"
            left_out[f"box of {video.title}: {named}"] += len(track.at)
            tracks.append(replace(track, boxes=np.full_like(track.boxes, np.nan)))
        else:
            inside = track.at < limit
            if not inside.all():
                left_out[f"box of {video.title}: its frame is beyond the end"] += int((~inside).sum())
            shown, follows = track.shown[inside], track.follows[inside]
            part = ImportedTrack(track.tag, track.at[inside], track.boxes[inside], shown, follows)
            tracks.append(_usable(part, video.title, size, left_out))
    listed = video.listed
    if listed is not None and frames is not None:
        listed = listed[listed < frames]
    return replace(video, tracks=[track for track in tracks if len(track.at)], listed=listed)


def _usable(track: ImportedTrack, title: str, size: tuple[int, int] | None, left_out: LeftOut) -> ImportedTrack:
    """The track with boxes clipped to the frame, and NaN for those that are not in it or have no area."""
    edge = np.full(4, np.inf) if size is None else np.array(size * 2, np.float64)
    boxes = track.boxes.clip(0, edge)
    outside = ((track.boxes < -BEYOND) | (track.boxes > edge + BEYOND)).any(axis=1) & track.shown
    flat = ((boxes[:, 2] <= boxes[:, 0]) | (boxes[:, 3] <= boxes[:, 1])) & track.shown & ~outside
    for wrong, problem in ((outside, "lies outside the frame"), (flat, "has no area")):
        if wrong.any():
            left_out[f"box of {title}: it {problem}"] += int(wrong.sum())
    return replace(track, boxes=np.where((outside | flat)[:, None], np.nan, boxes))


SAME_LENGTH = 2
"""Frames by which a player that counts by time may miss the length of a video."""


def match(
    video: ImportedVideo, known: Sequence[LabelledVideo], left_out: LeftOut, meant: str | None = None
) -> LabelledVideo | None:
    """The known video that ``video`` labels; None, with the reason in ``left_out``, where there is none.

    Labels that name no video are those of the one called ``meant``, if it is given.
    """
    unnamed = [other for other in known if meant in {None, other.name}]
    found = named(video.names, known) if video.names else unnamed
    fitting = [other for other in found if _difference(video, other) is None]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(other.name for other in fitting[:3])
    why = f"several tables fit it ({names}): import one table at a time" if fitting else "no table is of this video"
    if found and not fitting:
        why = f"{_difference(video, found[0])}"
    left_out[f"boxes of {video.title}: {why}"] += max(sum(len(track.at) for track in video.tracks), 1)
    return None


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


def _difference(video: ImportedVideo, known: LabelledVideo) -> str | None:
    """How the two cannot be the same video; None if they can."""
    source = known.source
    if video.size is not None and video.size != known.size:
        stated = "{}×{}".format(*video.size)
        return f"its frames are {stated}, those of {known.name} are {source.width}×{source.height}"
    expected, spare = source.frames, 0
    if video.rate is not None:
        expected, spare = ceil(source.duration * video.rate - 0.5), SAME_LENGTH
    if video.frames is not None and abs(video.frames - expected) > spare:
        return f"it has {video.frames} frames, {known.name} has {expected}"
    return None


def in_pixels(video: ImportedVideo, size: tuple[int, int]) -> ImportedVideo:
    """The same video with boxes in pixels of a frame of (width, height)."""
    if not video.relative:
        return video
    scaled = [replace(track, boxes=track.boxes * np.array(size * 2, np.float64)) for track in video.tracks]
    return replace(video, tracks=scaled, size=size, relative=False)
