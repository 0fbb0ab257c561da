"""Find the localisation table of each imported video, and refuse labels of another video."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import PurePosixPath

import numpy as np

from colocam.corrections.imported import ImportedVideo, LeftOut
from colocam.export.labels import LabelledVideo

SAME_LENGTH = 2
"""Frames by which a player that counts by time may miss the length of a video."""


def match(
    video: ImportedVideo, known: Sequence[LabelledVideo], left_out: LeftOut, meant: str | None = None
) -> LabelledVideo | None:
    """The known video that ``video`` labels; None, with the reason in ``left_out``, where there is none.

    Labels that name no video are those of the one called ``meant``, if it is given.
    """
    boxes = max(sum(len(track.at) for track in video.tracks), 1)
    unnamed = [other for other in known if meant in {None, other.name}]
    found = named(video.names, known) if video.names else unnamed
    if not found:
        left_out[f"boxes of {video.title}: no table is of this video"] += boxes
        return None
    fitting = [other for other in found if _difference(video, other) is None]
    if not fitting:
        left_out[f"boxes of {video.title}: {_difference(video, found[0])}"] += boxes
        return None
    if len(fitting) > 1:
        names = ", ".join(other.name for other in fitting[:3])
        left_out[f"boxes of {video.title}: several tables fit it ({names}): import one table at a time"] += boxes
        return None
    return fitting[0]


def same_name(names: Sequence[str], known: LabelledVideo) -> bool:
    """Whether one of ``names`` is that of a known video: of its table or of its file, with or without the ending."""
    file = PurePosixPath(known.source.file)
    own = {known.name, known.source.file, file.name, file.stem, str(known.source.path)}
    named = {PurePosixPath(name.replace("\\", "/")).name for name in names} | set(names)
    return not {name.casefold() for name in own}.isdisjoint(name.casefold() for name in named)


def named(names: Sequence[str], known: Sequence[LabelledVideo]) -> list[LabelledVideo]:
    """The videos that ``names`` mean: of several of one name those that an export calls so, or with these folders."""
    found = [other for other in known if same_name(names, other)]
    tails = [tail for name in names if len(tail := PurePosixPath(name.replace("\\", "/")).parts) > 1]
    by_name = [other for other in found if other.name in names]
    return by_name or [other for other in found if any(_ends_with(other, tail) for tail in tails)] or found


def _ends_with(known: LabelledVideo, tail: tuple[str, ...]) -> bool:
    """Whether the path of a video ends with these folders and this name, with or without the ending of the file."""
    paths = [known.source.path, PurePosixPath(known.source.stated_path)]
    return any(tail == one.parts[-len(tail) :] for path in paths for one in (path, path.with_suffix("")))


def _difference(video: ImportedVideo, known: LabelledVideo) -> str | None:
    """How the two cannot be the same video; None if they can."""
    source = known.source
    if video.size is not None and video.size != (source.width, source.height):
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
