"""Which frames of a table people checked: count them, and export them alone.

A frame is *interpolated* if one of its rows is, *checked* if none is and people set or checked one, and else unchecked:
its boxes are those of the model.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.labels.labeled_videos import FRAME_CHOICES, FrameChoice, LabeledVideo, VideosAt, named
from colocam.labels.table import CHECKED, INTERPOLATED, frame_indices, take_rows
from colocam.utils.tables import read_cells

KEPT: dict[FrameChoice, tuple[str, ...]] = {"answered": (CHECKED, INTERPOLATED), "checked": (CHECKED,)}
"""States of the frames that a choice keeps; the choice ``all`` keeps every frame."""


class FrameCounts(NamedTuple):
    """How many frames people checked, how many follow from those, and how many are the model's alone."""

    checked: int
    interpolated: int
    unchecked: int


def count_frames(videos: Iterable[LabeledVideo]) -> FrameCounts:
    """Count the listed frames of videos by what people said of them."""
    counts = Counter(state for video in videos for state in frame_states(video).values())
    return FrameCounts(counts[CHECKED], counts[INTERPOLATED], counts[""])


def frame_states(video: LabeledVideo) -> dict[int, str]:
    """The state of each listed frame; "" for an unchecked one."""
    states: dict[int, str] = dict.fromkeys(video.listed.tolist(), "")
    for frame, state in zip(video.rows.frame.tolist(), video.rows.state, strict=True):
        if state == INTERPOLATED or not states[frame]:
            states[frame] = state
    return states


def chosen_videos(
    videos: Sequence[LabeledVideo], frames: FrameChoice, tell: Callable[[str], None]
) -> Sequence[LabeledVideo]:
    """The videos with only the chosen frames, without the videos that have none; ``tell`` gets what was left out."""
    if frames not in FRAME_CHOICES:
        raise ArgumentError("frames", f"must be one of {', '.join(FRAME_CHOICES)}, got {frames!r}")
    if frames == "all":
        return videos
    counts = [count_frames([video]) for video in videos]
    kept = [count.checked + (count.interpolated if frames == "answered" else 0) for count in counts]
    if not any(kept):
        raise ArgumentError("frames", f"{frames!r} leaves nothing: no frame of the tables is known to be checked")
    everything = sum(map(sum, counts))
    tell(f"frames: {frames}: {sum(kept)} of {everything} in {np.count_nonzero(kept)} of {len(videos)} videos")
    listed = VideosAt(videos, np.flatnonzero(kept).tolist())
    return _ChangedVideos(listed, partial(_with_states, states=KEPT[frames]))


class _ChangedVideos(Sequence[LabeledVideo]):
    """Videos that a function changes when they are asked for."""

    def __init__(self, videos: Sequence[LabeledVideo], change: Callable[[LabeledVideo], LabeledVideo]) -> None:
        self._videos = videos
        self._change = change

    def __len__(self) -> int:
        return len(self._videos)

    @overload
    def __getitem__(self, at: int) -> LabeledVideo: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[LabeledVideo]: ...
    def __getitem__(self, at: int | slice) -> LabeledVideo | Sequence[LabeledVideo]:
        if isinstance(at, slice):
            return VideosAt(self, range(len(self))[at])
        return self._change(self._videos[at])


def _with_states(video: LabeledVideo, states: Sequence[str]) -> LabeledVideo:
    """A video without the frames of other states."""
    state_of = frame_states(video)
    rows = [row for row, frame in enumerate(video.rows.frame.tolist()) if state_of[frame] in states]
    return replace(video, rows=take_rows(video.rows, np.array(rows, np.int64)))


def marked_videos(videos: Sequence[LabeledVideo], path: Path) -> Sequence[LabeledVideo]:
    """Videos whose states are those of a table of frames that people looked at; it is read when the first is asked for.

    Args:
        videos: the videos.
        path: has the columns ``video`` and ``frame``; a row whose ``key`` is 0, in corrections, is interpolated.
    """
    stated = cache(lambda: _stated_frames(videos, path))

    def mark(video: LabeledVideo) -> LabeledVideo:
        states = stated()[video.name]
        return replace(video, rows=video.rows._replace(state=[states.get(at, "") for at in video.rows.frame.tolist()]))

    return _ChangedVideos(videos, mark)


def _stated_frames(videos: Sequence[LabeledVideo], path: Path) -> dict[str, dict[int, str]]:
    """The states that a table gives to frames, by the names of the videos."""
    cells = read_cells(path, required=("video", "frame"))
    states: dict[str, dict[int, str]] = {}
    keys = cells.floats("key").tolist()
    kinds = cells.text("kind")
    frames = frame_indices(cells).tolist()
    for name, frame, key, kind in zip(cells.text("video"), frames, keys, kinds, strict=True):
        if key != 0:
            states.setdefault(name, {})[frame] = CHECKED
        elif kind != "accepted":  # an unchanged frame that nobody is known to have looked at is unchecked
            states.setdefault(name, {}).setdefault(frame, INTERPOLATED)
    names = [video.name for video in videos]
    by_video: dict[str, dict[int, str]] = {name: {} for name in names}
    for name, marked in states.items():
        meant = named((name,), videos)
        if not meant:
            raise ColocamError(f"{path}: no table belongs to the video {name!r}{suggest(name, names)}")
        for video in meant:
            by_video[video.name] |= marked
    return by_video
