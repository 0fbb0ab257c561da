"""Read labels that were corrected in another tool, as corrections."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.comparing import Checked, compare, without_predictions
from colocam.labels.corrections import KINDS, Correction
from colocam.labels.formats import readable
from colocam.labels.formats.reading import unpacked
from colocam.labels.imported import LeftOut, in_pixels, match, named, without_faults
from colocam.labels.labelled_videos import LabelledVideo, read_videos
from colocam.labels.table_files import tables_of
from colocam.utils.extensions import unknown
from colocam.utils.tables import read_rows


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

    With the localisation tables from which the labels were exported, a frame whose boxes are those of the table is
    ``accepted``, one without a box where the table has some is ``none``, one whose class is new is ``class``, and
    every other is ``box``. Without tables all boxes are corrections.

    >>> from colocam.labels import import_labels, write_corrections
    >>> found = import_labels("task.zip", "cvat", tables=["boxes"])   # doctest: +SKIP
    >>> write_corrections("corrections.csv", found.corrections)       # doctest: +SKIP

    Args:
        source: a file, a folder or a ZIP archive.
        from_: one of :data:`colocam.labels.FORMATS`.
        tables: localisation tables, or folders of them with their subfolders, each with its ``.video.json``. Labels of
            other videos, or of videos of another length or size, are left out.
        classes: known classes, e.g. the tags of a run; others are left out. By default those of the tables.
        tolerance: pixels by which a box between key frames may differ from the prediction, as in the export.
        checked: list of frames that were looked at, as ``colocam review`` writes it, or ``all``: unchanged frames of
            it are as sure as changed ones. By default nobody is known to have looked at an unchanged frame. Of a video
            without any label, only these frames count as frames without an object.
        meant: name of the table that labels belong to which name no video; by default that of the only table.
    """
    path = Path(source)
    formats = readable()
    if from_ not in formats or (read := formats[from_].read) is None:
        raise ArgumentError("from_", f"must be a label format, got {from_!r}{unknown(from_, list(formats))}")
    if not tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {tolerance}")
    known = read_videos(tables_of(tables), [])
    tags = set(classes) or {tag for video in known for tag in video.rows.tag}
    how, left_out = formats[from_], LeftOut()
    frames = _checked(checked, known)
    with unpacked(path) as place:
        videos = read(place, known, left_out)
    allowed = how.precision + (tolerance if how.key_frames else 0)
    corrections: list[Correction] = []
    for video in videos:
        if not known:
            if video.relative:
                raise ColocamError(f"{path}: boxes are shares of the frame's size, which is not known: name `tables`")
            found = without_faults(video, left_out, classes=tags or None, frames=video.frames, size=video.size)
            corrections += without_predictions(found, from_)
        elif (other := match(video, known, left_out, meant)) is not None:
            pixels = in_pixels(video, other.size)
            found = without_faults(pixels, left_out, classes=tags, frames=other.source.frames, size=other.size)
            looked_at = frames.get(other.name, ())
            if not found.tracks and found.listed is None and looked_at != "all":
                left_out[f"{video.title}: no label of it; only frames that you looked at (checked) count as empty"] += 1
                found = replace(found, listed=np.array(sorted(looked_at), np.int64))
            corrections += compare(found, other, allowed, looked_at, from_)
    return Imported(corrections, left_out)


def _checked(checked: str | Path | None, known: Sequence[LabelledVideo]) -> dict[str, Checked]:
    """Frames that were looked at, by the name of their video."""
    if checked is None:
        return {}
    if str(checked) == "all":
        return {video.name: "all" for video in known}
    frames: dict[str, set[int]] = {}
    for row in read_rows(Path(checked), required=("video", "frame")):
        videos = named((row["video"],), known)
        if not row["frame"].isdecimal():
            raise ColocamError(f"{row.where}: frame {row['frame']!r} is not a frame index from 0")
        for video in videos:
            frames.setdefault(video.name, set()).add(int(row["frame"]))
    return dict(frames)
