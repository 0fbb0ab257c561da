"""Read labels that were corrected in another tool, as corrections: what was changed, removed or left as it is.

Labels of a stranger are read in a process of their own, with limits of memory and time, so that a server goes on
answering.
"""

import gc
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.corrections import KINDS, Correction, Kind, read_corrections
from colocam.labels.formats import readable
from colocam.labels.formats.reading import unpacked
from colocam.labels.labeled_videos import (
    Flags,
    ImportedTrack,
    ImportedVideo,
    LabeledVideo,
    LeftOut,
    named,
    read_videos,
)
from colocam.labels.table import BEYOND, Integers, frame_indices
from colocam.labels.table_files import tables_of
from colocam.types import Box, Float64Array
from colocam.utils.child_processes import ChildProcess, Parent
from colocam.utils.extensions import load_extensions, unknown
from colocam.utils.locks import temporary_folder
from colocam.utils.tables import read_cells
from colocam.video.decoder_child import limit_memory

MOST_FRAMES = 1 << 20
"""Frames of a video without a table between whose key frames boxes are interpolated, at most."""
SAME_LENGTH = 2
"""Frames by which a player that counts by time may miss the length of a video."""

MEMORY = 1 << 30
"""Bytes that reading apart may take (Linux)."""
SECONDS = 120.0
_CORRECTION = TypeAdapter(Correction)

FrameBoxes = dict[str, list[Box]]
"""The boxes of a frame by class."""
Checked = Collection[int] | Literal["all"]
"""Frames that a person looked at, whether they were changed or not."""


class Imported(NamedTuple):
    """The result of an import: the corrections, and what was left out and why."""

    corrections: list[Correction]
    left_out: LeftOut

    def summary(self) -> str:
        """One line with the number of corrected frames of each kind."""
        kinds = Counter(one.kind for one in self.corrections)
        return ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind]) or "none"


def import_labels(
    source: str | Path,
    from_: str,
    *,
    tables: Sequence[str | Path] = (),
    classes: Sequence[str] = (),
    tolerance: float = 1.0,
    checked: str | Path | None = None,
    meant: str | None = None,
) -> Imported:
    """Read labels that were corrected in another tool.

    With the localization tables from which the labels were exported, a frame whose boxes are those of the table is
    ``accepted``, one without a box where the table has some is ``none``, one whose class is new is ``class``, and
    every other is ``box``. Without tables all boxes are corrections.

    >>> from colocam.labels import import_labels, write_corrections
    >>> found = import_labels("task.zip", "cvat", tables=["boxes"])   # doctest: +SKIP
    >>> write_corrections("corrections.csv", found.corrections)       # doctest: +SKIP

    Args:
        source: a file, a folder or a ZIP archive.
        from_: one of :data:`colocam.labels.FORMATS`.
        tables: localization tables, or folders of them with their subfolders, each with its ``.video.json``. Labels of
            other videos, or of videos of another length or size, are left out.
        classes: known classes, e.g. the tags of a run; others are left out. By default those of the tables.
        tolerance: pixels by which a box between key frames may differ from the prediction, as in the export.
        checked: list of frames that were looked at, as ``colocam review`` writes it, or ``all``: unchanged frames of
            it are as sure as changed ones. By default nobody is known to have looked at an unchanged frame. Of a video
            without any label, only these frames count as frames without an object.
        meant: name of the table that labels belong to which name no video; by default that of the only table.
    """
    path, formats = Path(source), readable()
    if from_ not in formats or (read := formats[from_].read) is None:
        raise ArgumentError("from_", f"must be a label format, got {from_!r}{unknown(from_, list(formats))}")
    if not tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {tolerance}")
    known, left_out = read_videos(tables_of(tables), []), LeftOut()
    tags = set(classes) or {tag for video in known for tag in video.rows.tag}
    frames = _checked(checked, known)
    with unpacked(path) as place:
        videos = read(place, known, left_out)
    allowed = formats[from_].precision + (tolerance if formats[from_].key_frames else 0)
    corrections: list[Correction] = []
    for video in videos:
        other = _match(video, known, left_out, meant) if known else None
        if known and other is None:
            continue
        if other is None and video.relative:
            raise ColocamError(f"{path}: boxes are shares of the frame's size, which is not known: name `tables`")
        looked_at = () if other is None else frames.get(other.name, ())
        found = _usable(video, other, tags, left_out)
        if other is not None and not found.tracks and found.listed is None and looked_at != "all":
            left_out[f"{video.title}: no label of it; only frames that you looked at (checked) count as empty"] += 1
            found = replace(found, listed=np.array(sorted(looked_at), np.int64))
        corrections += _compared(found, other, allowed, looked_at, from_)
    return Imported(corrections, left_out)


def _checked(checked: str | Path | None, known: Sequence[LabeledVideo]) -> dict[str, Checked]:
    """Frames that were looked at, by the name of their video."""
    if checked is None:
        return {}
    if str(checked) == "all":
        return {video.name: "all" for video in known}
    frames: defaultdict[str, set[int]] = defaultdict(set)
    cells = read_cells(Path(checked), required=("video", "frame"))
    for name, frame in zip(cells.text("video"), frame_indices(cells).tolist(), strict=True):
        for video in named((name,), known):
            frames[video.name].add(frame)
    return dict(frames)


def _match(
    video: ImportedVideo, known: Sequence[LabeledVideo], left_out: LeftOut, meant: str | None
) -> LabeledVideo | None:
    """The known video that ``video`` labels; None, with the reason in ``left_out``, where there is none.

    Labels that name no video are those of the one called ``meant``, if it is given.
    """
    found = named(video.names, known) if video.names else [other for other in known if meant in {None, other.name}]
    differences = [_difference(video, other) for other in found]
    fitting = [other for other, difference in zip(found, differences, strict=True) if not difference]
    if len(fitting) == 1:
        return fitting[0]
    why = differences[0] if found else "no table is of this video"
    if fitting:
        names = ", ".join(other.name for other in fitting[:3])
        why = f"several tables fit it ({names}): import one table at a time"
    left_out[f"boxes of {video.title}: {why}"] += max(sum(len(track.at) for track in video.tracks), 1)
    return None


def _difference(video: ImportedVideo, known: LabeledVideo) -> str:
    """How the two cannot be the same video; empty if they can."""
    source = known.source
    if video.size is not None and video.size != known.size:
        stated = "{}×{}".format(*video.size)
        return f"its frames are {stated}, those of {known.name} are {source.width}×{source.height}"
    expected, spare = source.frames, 0
    if video.rate is not None:
        expected, spare = ceil(source.duration * video.rate - 0.5), SAME_LENGTH
    if video.frames is not None and abs(video.frames - expected) > spare:
        return f"it has {video.frames} frames, {known.name} has {expected}"
    return ""


def _usable(
    video: ImportedVideo, known: LabeledVideo | None, classes: Collection[str], left_out: LeftOut
) -> ImportedVideo:
    """The labels in pixels; those that cannot be right are counted in ``left_out`` and become NaN.

    Without a table, the length and size that the file states count, and all classes if ``classes`` is empty.
    """
    frames, size = (video.frames, video.size) if known is None else (known.source.frames, known.size)
    last = np.inf if frames is None or video.rate is not None else frames
    edge = np.full(4, np.inf) if size is None else np.array(size * 2, np.float64)
    tracks = []
    for track in video.tracks:
        unknown = not track.tag or (track.tag not in classes and (known is not None or bool(classes)))
        boxes = track.boxes * edge if video.relative else track.boxes
        inside = boxes.clip(0, edge)
        problems = {
            f"class {track.tag!r} is unknown" if track.tag else "it has no class": np.full(len(boxes), unknown),
            "its frame is beyond the end": track.at >= last,
            "it lies outside the frame": ((boxes < -BEYOND) | (boxes > edge + BEYOND)).any(axis=1) & track.shown,
            "it has no area": (inside[:, 2:] <= inside[:, :2]).any(axis=1) & track.shown,
        }
        right = ~np.isnan(boxes[:, 0])
        for problem, wrong in problems.items():
            if count := int((wrong & right).sum()):
                left_out[f"box of {video.title}: {problem}"] += count
            right &= ~wrong
        inside[~right] = np.nan
        kept = track.at < last
        if kept.any():
            flags = track.shown[kept], track.follows[kept]
            tracks.append(ImportedTrack(track.tag, track.at[kept], inside[kept], *flags))
    listed = video.listed
    if listed is not None and frames is not None:
        listed = listed[listed < frames]
    return replace(video, tracks=tracks, listed=listed)


def _compared(
    video: ImportedVideo, known: LabeledVideo | None, tolerance: float, checked: Checked, origin: str
) -> list[Correction]:
    """Corrections of a video; without predictions, all boxes and all frames that are listed without one.

    A frame whose boxes have moved by at most ``tolerance`` is accepted. It is a key frame only if it is in ``checked``,
    since nobody may have looked at it. A frame whose boxes were all removed is a key frame: it was changed by a person.

    Args:
        video: what the label file says, in pixels.
        known: the localization table; None: there is none.
        tolerance: pixels by which a corner may differ from the prediction.
        checked: frames that were looked at.
        origin: name of the format.
    """
    name, path = video.names[0] if video.names else "video", ""
    times, tags = dict[int, float](), dict[int, str]()
    if known is not None:
        name, path = known.name, str(known.source.path)
        listed = known.rows.frame.tolist()
        times = dict(zip(listed, known.rows.pts.tolist(), strict=True))
        tags = dict(zip(listed, known.rows.tag, strict=True))
    corrections = []
    for frame, (given, key) in _given(video, known).items():
        kinds: dict[str, Kind] = dict.fromkeys(given, "box") or {"": "none"}
        if known is not None and frame in known.objects_of:
            kinds = _kinds(given, _predicted(known, frame), tolerance)
            if "accepted" not in kinds.values():  # where a track has one class, an export gives it to all of its frames
                in_track = _kinds(given, _predicted(known, frame, of_tracks=True), tolerance)
                kinds = in_track if "accepted" in in_track.values() else kinds
        for tag, kind in kinds.items():
            looked_at = checked == "all" or frame in checked
            sure = looked_at if kind == "accepted" else key or not given
            boxes = tuple(given.get(tag, ()))
            place = name, frame, times.get(frame)
            corrections.append(Correction(*place, kind, tag or tags.get(frame, ""), boxes, sure, origin, path))
    return corrections


def _given(video: ImportedVideo, known: LabeledVideo | None) -> dict[int, tuple[FrameBoxes, bool]]:
    """Boxes by class of each frame that was labeled, and whether one of them is set at this very frame."""
    if known is not None and video.rate is not None:
        frames = known.listed
        when = known.shown_at(video.rate)[np.searchsorted(known.rows.frame, frames)]
        if not np.array_equal(when, frames):  # a variable rate
            last = np.append(when[1:] != when[:-1], True)  # of frames at one time the last one stays visible
            return _sampled(video, frames[last], when[last].astype(np.float64), between=True)
    keys = [track.at if known is None else track.at[track.shown] for track in video.tracks]
    frames = np.unique(np.concatenate([np.empty(0), *keys])).astype(np.int64)
    if video.listed is not None:
        frames = np.union1d(frames, video.listed)
    elif known is not None:
        frames = np.union1d(frames, known.listed)
    if known is not None:
        frames = frames[(frames >= 0) & (frames < known.source.frames)]
    elif video.frames and video.frames <= MOST_FRAMES and any(track.follows.any() for track in video.tracks):
        frames = np.arange(video.frames)
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


def _predicted(known: LabeledVideo, frame: int, *, of_tracks: bool = False) -> FrameBoxes:
    """The boxes of a listed frame by class: that of the frame, or that of the track."""
    boxes: FrameBoxes = {}
    for row in known.objects_of[frame]:
        tag = known.track_of(row).tag if of_tracks else known.rows.tag[row]
        boxes.setdefault(tag, []).append(Box(*known.rows.box[row].tolist()))
    return boxes


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


def import_labels_apart(source: Path, from_: str, *, tables: Sequence[Path], **options: Any) -> Imported:  # noqa: ANN401
    """As :func:`colocam.labels.import_labels`, whose other ``options`` must be what JSON can hold."""
    asked = {"source": str(source), "from_": from_, "tables": list(map(str, tables)), **options}
    corrections, left_out = _apart(source, {"labels": asked})
    return Imported(corrections, LeftOut(left_out))


def read_corrections_apart(*paths: Path) -> list[Correction]:
    """As :func:`colocam.labels.read_corrections`."""
    return _apart(paths[0], {"corrections": list(map(str, paths))})[0]


def _apart(source: Path, message: dict[str, Any]) -> tuple[list[Correction], dict[str, int]]:
    with temporary_folder(source.parent) as folder:
        child = ChildProcess(__name__)
        try:
            with suppress(OSError):  # it ended at once: see below
                child.channel.send({**message, "named": str(source), "folder": str(folder), "memory": MEMORY})
            if not child.channel.ready(SECONDS):
                raise ColocamError(f"{source}: not read within {SECONDS:g} s: split the file")
            answer = child.channel.receive()
            if answer is None:
                raise ColocamError(f"{source}: reading it ended with {child.how_it_ended()}: split the file")
        finally:
            child.kill()
        if answer["problem"]:
            raise ColocamError(answer["problem"])
        with (folder / "found").open("rb") as file:
            return [_CORRECTION.validate_json(line) for line in file], answer["left_out"]


def main(control: int, life: int) -> None:
    """Do what the parent asks for, once."""
    parent = Parent(control, life)
    asked = parent.receive()
    if asked is None:
        return
    folder, memory = Path(asked["folder"]), asked["memory"]
    gc.disable()  # millions of labels, none of them in a circle; the process ends after this one file
    tempfile.tempdir = str(folder)  # the parent removes what is left in it
    try:
        load_extensions()
        limit_memory(memory)
        if "labels" in asked:
            corrections, left_out = import_labels(**asked["labels"])
        else:
            corrections, left_out = read_corrections(*asked["corrections"]), LeftOut()
        with (folder / "found").open("wb") as file:
            # One line each: the parent gives way to its other threads between two lines.
            file.writelines(_CORRECTION.dump_json(one) + b"\n" for one in corrections)
        answer = {"problem": "", "left_out": left_out}
    except ColocamError as error:
        answer = {"problem": str(error)}
    except MemoryError:
        answer = {"problem": f"{asked['named']}: takes more than {memory >> 20} MiB of memory: split the file"}
    parent.send(answer)
