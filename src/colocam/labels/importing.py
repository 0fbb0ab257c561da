"""Read labels from another tool as corrections: what was changed, removed or left as it is.

Tests: tests/labels/test_from_cvat.py, tests/labels/test_from_label_studio.py, tests/labels/test_round_trips.py.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.comparison import Checked, compare
from colocam.labels.corrections import KINDS, Correction
from colocam.labels.formats import readable
from colocam.labels.formats.reading import unpacked
from colocam.labels.imported_videos import ImportedTrack, ImportedVideo
from colocam.labels.labeled_videos import LabeledVideo, LeftOut, named, read_videos
from colocam.labels.table import BEYOND, frame_indices
from colocam.labels.table_files import tables_of
from colocam.utils.extensions import unknown
from colocam.utils.tables import read_cells

SAME_LENGTH = 2
"""Frames by which a tool that measures a video in seconds may miscount its frames."""


class Imported(NamedTuple):
    """The result of an import.

    Attributes:
        corrections: what was changed, removed or left as it is.
        left_out: what was left out and why.
        strangers: what the file calls its videos, if there is no table of any of them.
    """

    corrections: list[Correction]
    left_out: LeftOut
    strangers: tuple[str, ...] = ()

    def summary(self) -> str:
        """One line: rows of the table of corrections by kind, and how many frames they describe."""
        rows = Counter[str]()
        for correction in self.corrections:
            rows[correction.kind] += max(len(correction.boxes), 1)
        frames = len({(correction.path, correction.video, correction.frame) for correction in self.corrections})
        kinds = ", ".join(f"{rows[kind]} {kind}" for kind in KINDS if rows[kind])
        return f"{rows.total()} rows ({kinds}) of {frames} frames" if rows else "none"


def import_labels(
    source: str | Path,
    from_: str,
    *,
    tables: Sequence[str | Path] = (),
    classes: Sequence[str] = (),
    tolerance: float = 1.0,
    checked: str | Path | None = None,
    meant: str | None = None,
    labels_of: str | None = None,
) -> Imported:
    """Read labels that were corrected in another tool.

    If the file tells objects apart (CVAT, MOT, COCO, Label Studio, tables with a ``track``), each object has its own
    corrections, with its number in ``track``. In other formats, a correction holds all boxes of a class.

    If you give the localization tables that the labels were exported from, each frame is compared with its table:
    ``accepted`` has the same boxes, ``none`` has no box where the table has some, ``class`` has a new class, and
    ``box`` is any other frame. Without tables, all boxes are corrections.

    >>> from colocam.labels import import_labels, write_corrections
    >>> imported = import_labels("task.zip", "cvat", tables=["boxes"])   # doctest: +SKIP
    >>> write_corrections("corrections.csv", imported.corrections)    # doctest: +SKIP

    Args:
        source: a file, a folder or a ZIP archive.
        from_: one of :data:`colocam.labels.FORMATS`.
        tables: localization tables, or folders of them with their subfolders, each with its ``.video.json``. Labels of
            other videos, or of videos of another length or size, are left out.
        classes: known classes, e.g. the tags of a run; others are left out. By default those of the tables.
        tolerance: pixels by which a box between key frames may differ from the prediction, as in the export.
        checked: the frames that a person looked at: a list as ``colocam review`` writes it, or ``all``. Unchanged
            frames among them are as sure as changed ones; by default, no unchanged frame counts as looked at. In a
            video without any label, only these frames count as frames without an object.
        meant: name of the table for labels that name no video; by default that of the only table.
        labels_of: what the file calls the video whose labels are those of ``meant``, if it is another name.
    """
    path = Path(source)
    formats = readable()
    if from_ not in formats or (read := formats[from_].read) is None:
        raise ArgumentError("from_", f"must be a label format, got {from_!r}{unknown(from_, list(formats))}")
    if not tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {tolerance}")
    known = read_videos(tables_of(tables), [])
    left_out = LeftOut()
    tags = set(classes) or {tag for video in known for tag in video.rows.tag}
    frames = _checked(checked, known)
    with unpacked(path) as place:
        videos = [_renamed(video, labels_of) for video in read(place, known, left_out)]
    if not known:
        return Imported(_without_tables(path, videos, tags, left_out, from_), left_out)
    allowed = formats[from_].precision + (tolerance if formats[from_].key_frames else 0)
    corrections: list[Correction] = []
    for video in videos:
        table = _match(video, known, left_out, meant)
        if table is None:
            continue
        looked_at = frames.get(table.name, ())
        usable = _usable(video, table, tags, left_out)
        silent = not usable.tracks and usable.listed is None  # unlabeled, or all boxes were removed: nobody can tell
        if silent and table.objects.size and looked_at != "all":
            left_out[f"{video.title}: no label of it; only frames that you looked at (checked) count as empty"] += 1
            usable = replace(usable, listed=np.array(sorted(looked_at), np.int64))
        corrections += compare(usable, table, allowed, looked_at, from_)
    return Imported(corrections, left_out, _strangers(videos, known))


def _strangers(videos: Sequence[ImportedVideo], known: Sequence[LabeledVideo]) -> tuple[str, ...]:
    if any(not video.names or named(video.names, known) for video in videos):
        return ()
    return tuple({video.names[0]: None for video in videos})


def _renamed(video: ImportedVideo, labels_of: str | None) -> ImportedVideo:
    """The video without its name, if it is the one called ``labels_of``."""
    return replace(video, names=()) if labels_of in video.names else video


def _without_tables(
    path: Path, videos: Sequence[ImportedVideo], tags: Collection[str], left_out: LeftOut, from_: str
) -> list[Correction]:
    corrections: list[Correction] = []
    for video in _told_apart(path, videos):
        if video.relative:
            raise ColocamError(f"{path}: boxes are fractions of the frame size, which is not known: name `tables`")
        corrections += compare(_usable(video, None, tags, left_out), None, 0.0, (), from_)
    return corrections


def _told_apart(path: Path, videos: Sequence[ImportedVideo]) -> list[ImportedVideo]:
    """The videos, each with a name that no other one has.

    Files in different folders may have the same name; their tasks then tell them apart. Files that state no length are
    parts of the same video: the jobs of a task, or frames of a video in several files.
    """
    namesakes: defaultdict[str, list[ImportedVideo]] = defaultdict(list)
    for video in videos:
        namesakes[video.names[0] if video.names else ""].append(video)
    apart: list[ImportedVideo] = []
    for name, group in namesakes.items():
        if len(group) == 1 or all(video.frames is None for video in group):
            apart += group
            continue
        last_names = {video.names[-1] for video in group if video.names}
        if len(last_names) < len(group):
            title = repr(name) if name else "without a name"
            raise ColocamError(f"{path}: {len(group)} videos are called {title}: name their `tables`")
        apart += [replace(video, names=video.names[::-1]) for video in group]
    return apart


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
    """The known video that the labels of ``video`` belong to; None, with the reason in ``left_out``, if there is none.

    Labels that name no video belong to the one called ``meant``, if it is given.
    """
    candidates = named(video.names, known) if video.names else [table for table in known if meant in {None, table.name}]
    differences = [_difference(video, table) for table in candidates]
    fitting = [table for table, difference in zip(candidates, differences, strict=True) if not difference]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(table.name for table in fitting[:3])
        reason = f"several tables fit it ({names}): import one table at a time"
    elif candidates:
        reason = differences[0]
    else:
        reason = "no table is of this video"
    left_out[f"boxes of {video.title}: {reason}"] += max(sum(len(track.at) for track in video.tracks), 1)
    return None


def _difference(video: ImportedVideo, known: LabeledVideo) -> str:
    """Why the two cannot be the same video; empty if they can."""
    source = known.source
    if video.size is not None and video.size != known.size:
        stated = "{}×{}".format(*video.size)
        return f"its frames are {stated}, those of {known.name} are {source.width}×{source.height}"
    expected = source.frames
    spare = 0
    if video.rate is not None:
        expected = ceil(source.duration * video.rate - 0.5)
        spare = SAME_LENGTH
    if video.frames is not None and abs(video.frames - expected) > spare:
        return f"it has {video.frames} frames, {known.name} has {expected}"
    return ""


def _usable(
    video: ImportedVideo, known: LabeledVideo | None, classes: Collection[str], left_out: LeftOut
) -> ImportedVideo:
    """The labels in pixels. Those that cannot be right become NaN and are counted in ``left_out``.

    Without a table, the file's own length and size apply, and every class is allowed if ``classes`` is empty.
    """
    frames = video.frames if known is None else known.source.frames
    size = video.size if known is None else known.size
    last = np.inf if frames is None or video.rate is not None else frames
    edge = np.full(4, np.inf) if size is None else np.array(size * 2, np.float64)
    tracks = []
    for track in video.tracks:
        unknown_class = not track.tag or (track.tag not in classes and (known is not None or bool(classes)))
        boxes = track.boxes * edge if video.relative else track.boxes
        inside = boxes.clip(0, edge)
        problems = {
            f"class {track.tag!r} is unknown" if track.tag else "it has no class": np.full(len(boxes), unknown_class),
            "its frame is beyond the end": track.at >= last,
            "it lies outside the frame": ((boxes < -BEYOND) | (boxes > edge + BEYOND)).any(axis=1) & track.shown,
            "it has no area": (inside[:, 2:] <= inside[:, :2]).any(axis=1) & track.shown,
        }
        usable = ~np.isnan(boxes[:, 0])
        for problem, wrong in problems.items():
            if count := int((wrong & usable).sum()):
                left_out[f"box of {video.title}: {problem}"] += count
            usable &= ~wrong
        inside[~usable] = np.nan
        kept = track.at < last
        if kept.any():
            shown, follows = track.shown[kept], track.follows[kept]
            tracks.append(ImportedTrack(track.tag, track.at[kept], inside[kept], shown, follows, track.number))
    listed = video.listed
    if listed is not None and frames is not None:
        listed = listed[listed < frames]
    return replace(video, tracks=tracks, listed=listed)
