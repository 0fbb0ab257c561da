"""Compare imported boxes with the predictions of a localisation table: what was changed, removed or left as it is."""

from collections import defaultdict
from collections.abc import Collection
from typing import Literal

import numpy as np

from colocam.labels.corrections import Correction, Kind
from colocam.labels.imported import Flags, ImportedVideo, Integers
from colocam.labels.labelled_videos import LabelledVideo
from colocam.types import Box, Float64Array

MOST_FRAMES = 1 << 20
"""Frames of a video without a table between whose key frames boxes are interpolated, at most."""

FrameBoxes = dict[str, list[Box]]
"""The boxes of a frame by class."""
Checked = Collection[int] | Literal["all"]
"""Frames that a person looked at, whether they were changed or not."""


def compare(
    video: ImportedVideo, known: LabelledVideo, tolerance: float, checked: Checked, origin: str
) -> list[Correction]:
    """Corrections of a video whose predictions are known.

    A frame whose boxes have moved by at most ``tolerance`` is accepted. It is a key frame only if it is in ``checked``,
    since nobody may have looked at it. A frame whose boxes were all removed is a key frame: it was changed by a person.

    Args:
        video: what the label file says, in pixels.
        known: the localisation table.
        tolerance: pixels by which a corner may differ from the prediction.
        checked: frames that were looked at.
        origin: name of the format.
    """
    times = dict(zip(known.rows.frame.tolist(), known.rows.pts.tolist(), strict=True))
    expected, of_tracks = _predictions(known), _predictions(known, of_tracks=True)
    absent = {int(frame): tag for frame, tag in zip(known.rows.frame, known.rows.tag, strict=True)}
    corrections = []
    for frame, (given, key) in _given(video, known).items():
        sure = key or not given
        if frame in expected:
            kinds = _kinds(given, expected[frame], tolerance)
            if "accepted" not in kinds.values():  # where a track has one class, an export gives it to all of its frames
                in_track = _kinds(given, of_tracks[frame], tolerance)
                kinds = in_track if "accepted" in in_track.values() else kinds
        else:
            kinds = dict.fromkeys(given, "box") or {"": "none"}
        for tag, kind in kinds.items():
            seen = kind != "accepted" or checked == "all" or frame in checked
            corrections.append(
                Correction(
                    video=known.name,
                    frame=frame,
                    pts=times.get(frame),
                    kind=kind,
                    tag=tag or absent.get(frame, ""),
                    boxes=tuple(given.get(tag, ())),
                    key=seen and (sure or kind == "accepted"),
                    origin=origin,
                    path=str(known.source.path),
                )
            )
    return corrections


def without_predictions(video: ImportedVideo, origin: str) -> list[Correction]:
    """Corrections of a video that has no localisation table: all boxes, and all frames that are listed without one."""
    frames = np.unique(np.concatenate([np.empty(0), *(track.at for track in video.tracks)]))
    if video.listed is not None:
        frames = np.union1d(video.listed, frames)
    if any(track.follows.any() for track in video.tracks) and (video.frames or np.inf) <= MOST_FRAMES:
        frames = np.arange(video.frames or 0)
    name = video.names[0] if video.names else "video"
    corrections = []
    for frame, (own, key) in _sampled(video, frames.astype(np.int64), frames.astype(np.float64)).items():
        corrections += [Correction(name, frame, None, "box", tag, tuple(own[tag]), key, origin) for tag in own]
        if not own:
            corrections.append(Correction(name, frame, None, "none", "", (), origin=origin))
    return corrections


def _given(video: ImportedVideo, known: LabelledVideo) -> dict[int, tuple[FrameBoxes, bool]]:
    """Boxes by class of each frame that was labelled, and whether one of them is set at this very frame."""
    frames = known.listed
    if video.rate is not None:
        when = known.shown_at(video.rate)[np.searchsorted(known.rows.frame, frames)]
        if not np.array_equal(when, frames):  # a variable rate
            last = np.append(when[1:] != when[:-1], True)  # of frames at one time the last one stays visible
            return _sampled(video, frames[last], when[last].astype(np.float64), between=True)
    visible = [track.at[track.shown] for track in video.tracks]
    keys = np.unique(np.concatenate([np.empty(0), *visible])).astype(np.int64)
    keys = keys[(keys >= 0) & (keys < known.source.frames)]
    if video.listed is not None:
        frames = video.listed[video.listed < known.source.frames]
    frames = np.union1d(frames, keys)
    return _sampled(video, frames, frames.astype(np.float64))


def _sampled(
    video: ImportedVideo, frames: Integers, when: Float64Array, *, between: bool = False
) -> dict[int, tuple[FrameBoxes, bool]]:
    """Boxes by class at ``when`` (n,), the times of ``frames`` (n,).

    With ``between``, a key frame between two times belongs to the frame that is shown then. A frame with a label that
    was left out is left out, too.
    """
    boxes: defaultdict[int, FrameBoxes] = defaultdict(dict)
    any_key: Flags = np.zeros(len(frames), bool)
    unusable: Flags = np.zeros(len(frames), bool)
    for track in video.tracks:
        own = when.copy()
        if between:
            position = np.searchsorted(when, track.at, side="right") - 1
            inside = position >= 0
            own[position[inside]] = track.at[inside]
        found, seen, key = track.sample(own)
        any_key |= key
        unusable |= seen & np.isnan(found[:, 0])
        for row in np.flatnonzero(seen).tolist():
            boxes[int(frames[row])].setdefault(track.tag, []).append(Box(*found[row].tolist()))
    rows = zip(frames.tolist(), any_key.tolist(), unusable.tolist(), strict=True)
    return {frame: (boxes.get(frame, {}), key) for frame, key, left_out in rows if not left_out}


def _predictions(known: LabelledVideo, *, of_tracks: bool = False) -> dict[int, FrameBoxes]:
    """The boxes of each listed frame by class: that of the frame, or that of the track."""
    expected: dict[int, FrameBoxes] = {frame: {} for frame in known.objects_of}
    for frame, rows in known.objects_of.items():
        for row in rows:
            tag = known.track_of(row).tag if of_tracks else known.rows.tag[row]
            expected[frame].setdefault(tag, []).append(Box(*known.rows.box[row].tolist()))
    return expected


def _kinds(given: FrameBoxes, expected: FrameBoxes, tolerance: float) -> dict[str, Kind]:
    """What was done to each class of a frame; the class is "" where the frame has no box."""
    if not given:
        return {"": "none" if expected else "accepted"}
    same = given.keys() == expected.keys()
    if same and all(_equal(boxes, expected[tag], tolerance) for tag, boxes in given.items()):
        return dict.fromkeys(given, "accepted")
    return {tag: "class" if expected and tag not in expected else "box" for tag in given}


def _equal(given: list[Box], expected: list[Box], tolerance: float) -> bool:
    """Whether each box is within ``tolerance`` of another expected one."""
    left = list(expected)
    for box in given:
        near = next((o for o in left if all(abs(a - b) <= tolerance for a, b in zip(box, o, strict=True))), None)
        if near is None:
            return False
        left.remove(near)
    return not left
