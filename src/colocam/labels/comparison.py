"""Compare the labels of a video with its localization table: which frames were changed, and how.

Without a table, everything that the labels say is a correction.

Tests: tests/labels/test_from_cvat.py, tests/labels/test_round_trips.py, tests/labels/test_frame_states.py.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from colocam.labels.corrections import Correction, Kind
from colocam.labels.imported_videos import Flags, ImportedVideo
from colocam.labels.labeled_videos import LabeledVideo
from colocam.labels.table import Integers
from colocam.types import Box, Float64Array

MOST_FRAMES = 1 << 20
"""Frames of a video without a table between whose key frames boxes are interpolated, at most."""

BoxesByClass = dict[str, list[Box]]
Checked = Collection[int] | Literal["all"]
"""Frames that a person looked at, whether they were changed or not."""


class FrameObject(NamedTuple):
    """An object in a frame; ``number`` is that of its track, None where the file does not tell objects apart."""

    tag: str
    box: Box
    number: int | None


class LabeledFrame(NamedTuple):
    """The objects of a frame, and whether one of them is set at this very frame, not between two key frames."""

    objects: list[FrameObject]
    key: bool


def compare(
    video: ImportedVideo, table: LabeledVideo | None, tolerance: float, checked: Checked, origin: str
) -> list[Correction]:
    """Corrections of a video; without a table, all boxes and all frames that are listed without one.

    A frame whose boxes have moved by at most ``tolerance`` is accepted. It is a key frame only if it is in ``checked``,
    since nobody may have looked at it. A frame whose boxes were all removed is a key frame: it was changed by a person.

    Args:
        video: what the label file says, in pixels.
        table: the video's localization table; None: there is none.
        tolerance: pixels by which a corner may differ from the prediction.
        checked: frames that were looked at.
        origin: name of the format.
    """
    name = video.names[0] if video.names else "video"
    path = ""
    times: dict[int, float] = {}
    predicted_tags: dict[int, str] = {}
    if table is not None:
        name, path = table.name, str(table.source.path)
        frames = table.rows.frame.tolist()
        times = dict(zip(frames, table.rows.pts.tolist(), strict=True))
        predicted_tags = dict(zip(frames, table.rows.tag, strict=True))
    corrections = []
    for frame, labeled in _labeled_frames(video, table).items():
        looked_at = checked == "all" or frame in checked
        for tag, kind in _kinds_of_frame(labeled, table, frame, tolerance).items():
            sure = looked_at if kind == "accepted" else labeled.key or not labeled.objects
            for number, boxes in _by_number(labeled.objects, tag).items():
                corrections.append(
                    Correction(
                        video=name,
                        frame=frame,
                        pts=times.get(frame),
                        kind=kind,
                        tag=tag or predicted_tags.get(frame, ""),
                        boxes=tuple(boxes),
                        key=sure,
                        origin=origin,
                        path=path,
                        track=number,
                    )
                )
    return corrections


def _by_number(objects: Iterable[FrameObject], tag: str) -> dict[int | None, list[Box]]:
    """The boxes of a class by the number of their object; those without a number together, as no boxes are."""
    boxes: dict[int | None, list[Box]] = {}
    for labeled in objects:
        if labeled.tag == tag:
            boxes.setdefault(labeled.number, []).append(labeled.box)
    return boxes or {None: []}


def _kinds_of_frame(labeled: LabeledFrame, table: LabeledVideo | None, frame: int, tolerance: float) -> dict[str, Kind]:
    """What was done to each class of a frame; the class is "" where the frame has no box."""
    boxes: BoxesByClass = {}
    for labeled_object in labeled.objects:
        boxes.setdefault(labeled_object.tag, []).append(labeled_object.box)
    if table is None or frame not in table.objects_of:
        return dict.fromkeys(boxes, "box") or {"": "none"}
    kinds = _kinds(boxes, _predicted(table, frame), tolerance)
    if "accepted" in kinds.values():
        return kinds
    # Where a track has one class, an export gives it to all frames of the track.
    kinds_in_tracks = _kinds(boxes, _predicted(table, frame, of_tracks=True), tolerance)
    return kinds_in_tracks if "accepted" in kinds_in_tracks.values() else kinds


def _predicted(table: LabeledVideo, frame: int, *, of_tracks: bool = False) -> BoxesByClass:
    """The boxes of a listed frame by class: that of the row, or that of its track."""
    boxes: BoxesByClass = {}
    for row in table.objects_of[frame]:
        tag = table.track_of(row).tag if of_tracks else table.rows.tag[row]
        boxes.setdefault(tag, []).append(Box(*table.rows.box[row].tolist()))
    return boxes


def _kinds(boxes: BoxesByClass, predicted: BoxesByClass, tolerance: float) -> dict[str, Kind]:
    if not boxes:
        return {"": "none" if predicted else "accepted"}
    same_classes = boxes.keys() == predicted.keys()
    if same_classes and all(_equal(boxes[tag], predicted[tag], tolerance) for tag in boxes):
        return dict.fromkeys(boxes, "accepted")
    return {tag: "class" if predicted and tag not in predicted else "box" for tag in boxes}


def _equal(boxes: Sequence[Box], predicted: Sequence[Box], tolerance: float) -> bool:
    """Whether each box is within ``tolerance`` of another predicted one, and no predicted one is left."""
    left = list(predicted)
    for box in boxes:
        near = next((other for other in left if _distance(box, other) <= tolerance), None)
        if near is None:
            return False
        left.remove(near)
    return not left


def _distance(box: Box, other: Box) -> float:
    """Pixels by which the corners of two boxes differ at most."""
    return max(abs(side - other_side) for side, other_side in zip(box, other, strict=True))


def _labeled_frames(video: ImportedVideo, table: LabeledVideo | None) -> dict[int, LabeledFrame]:
    """The frames that were labeled, with and without objects."""
    if table is not None and video.rate is not None:
        frames = table.listed
        shown_at = table.shown_at(video.rate)[np.searchsorted(table.rows.frame, frames)]
        if not np.array_equal(shown_at, frames):  # a variable rate
            last = np.append(shown_at[1:] != shown_at[:-1], True)  # of frames at one time the last one stays visible
            return _sample(video, frames[last], shown_at[last].astype(np.float64), between=True)
    frames = _frames_with_labels(video, table)
    return _sample(video, frames, frames.astype(np.float64))


def _frames_with_labels(video: ImportedVideo, table: LabeledVideo | None) -> Integers:
    keys = [track.at if table is None else track.at[track.shown] for track in video.tracks]
    frames = np.unique(np.concatenate([np.empty(0), *keys])).astype(np.int64)
    if video.listed is not None:
        frames = np.union1d(frames, video.listed)
    elif table is not None:
        frames = np.union1d(frames, table.listed)
    if table is not None:
        return frames[(frames >= 0) & (frames < table.source.frames)]
    interpolated = any(track.follows.any() for track in video.tracks)
    if interpolated and video.frames and video.frames <= MOST_FRAMES:
        return np.arange(video.frames)
    return frames


def _sample(
    video: ImportedVideo, frames: Integers, times: Float64Array, *, between: bool = False
) -> dict[int, LabeledFrame]:
    """The objects of ``frames`` (n,), which are shown at ``times`` (n,).

    With ``between``, a key frame between two times belongs to the frame that is shown then. A frame with a label that
    was left out is left out, too.
    """
    objects: defaultdict[int, list[FrameObject]] = defaultdict(list)
    any_key: Flags = np.zeros(len(frames), bool)
    unusable: Flags = np.zeros(len(frames), bool)
    for track in video.tracks:
        track_times = times.copy()
        if between:
            position = np.searchsorted(times, track.at, side="right") - 1
            inside = position >= 0
            track_times[position[inside]] = track.at[inside]
        boxes, seen, key = track.sample(track_times)
        any_key |= key
        unusable |= seen & np.isnan(boxes[:, 0])
        for row in np.flatnonzero(seen).tolist():
            objects[int(frames[row])].append(FrameObject(track.tag, Box(*boxes[row].tolist()), track.number))
    rows = zip(frames.tolist(), any_key.tolist(), unusable.tolist(), strict=True)
    return {frame: LabeledFrame(objects.get(frame, []), key) for frame, key, left_out in rows if not left_out}
