"""Corrections, what a person says about one frame of a video, and their only reader and writer.

Tests: tests/labels/test_correction_table.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from colocam.errors import ColocamError, suggest
from colocam.labels.table import CORNERS, corners, frame_indices, indices
from colocam.types import Box
from colocam.utils.files import utf8, write_text
from colocam.utils.tables import Cells, csv_text, read_cells

Kind = Literal["box", "none", "accepted", "class"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""box: the boxes were drawn or changed; none: the frame shows no object; accepted: the prediction is right, with or
without a box; class: the class was changed."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person says about the objects of one class in one frame, or about one object of several.

    A row of a localization table is what a model found; this also says what the person did, how sure it is (``key``)
    and where it comes from, and may say that there is no object.

    Attributes:
        video: name of the video: that of its localization table, or of its clip in a run.
        frame: index of the frame in the video, from 0.
        pts: presentation time in seconds; None: unknown.
        kind: what was done, see :data:`KINDS`.
        tag: class of the objects; "" where it is not known, which only ``none`` and ``accepted`` without a box allow.
        boxes: all boxes of this class in the frame, in pixels of the original video; none where it shows no object.
        key: the person set or checked this very frame; False: it lies between such frames, so the box is interpolated,
            or it equals the prediction and may not have been looked at.
        origin: where it comes from: the name of a label format, or ``page``.
        path: file or folder of the video; "": unknown.
        content: id of the video's content, as ``colocam serve`` knows it; "": unknown.
        track: number of the object in its video, from 1, where each object has a correction of its own; None: this is
            about all objects of the class.
    """

    video: str
    frame: int
    pts: float | None
    kind: Kind
    tag: str
    boxes: tuple[Box, ...]
    key: bool = True
    origin: str = ""
    path: str = ""
    content: str = ""
    track: int | None = None


COLUMNS = ("video", "frame", "pts", "kind", "class", *CORNERS, "key", "origin", "path", "content", "track")


def write_corrections(path: str | Path, corrections: Iterable[Correction]) -> Path:
    """Write corrections as CSV; a file that exists is refused, unless it holds the same text.

    Numbers have as many digits as they need to be read back exactly.
    """
    path = Path(path)
    rows = (
        (
            *(utf8(one.video), one.frame, one.pts, one.kind, utf8(one.tag), *box, int(one.key)),
            *(utf8(one.origin), utf8(one.path), utf8(one.content), one.track),
        )
        for one in corrections
        for box in one.boxes or ((None,) * 4,)
    )
    text = csv_text(COLUMNS, rows)
    if path.is_file() and path.stat().st_size and path.read_bytes() != text.encode():
        raise ColocamError(f"{path} exists, and corrections are never replaced: choose another file")
    write_text(path, text)
    return path


def read_corrections(*paths: str | Path) -> list[Correction]:
    """Read corrections, in the order of the files and of the first row of each frame.

    Of a frame that several files correct, the last file counts, so give newer files later.

    Raises:
        ColocamError: names the file, the row, the value and what is expected.
    """
    corrections: dict[tuple[str, str, int], list[Correction]] = {}
    for path in paths:
        read: dict[tuple[str, str, int], list[Correction]] = {}
        for correction in _read(Path(path)):
            read.setdefault((correction.path, correction.video, correction.frame), []).append(correction)
        corrections |= read
    return [correction for frame in corrections.values() for correction in frame]


def _read(path: Path) -> list[Correction]:
    cells = read_cells(path, required=("video", "frame", "kind", "class", *CORNERS))
    video, kind, tag, origin, place, content = map(cells.text, ("video", "kind", "class", "origin", "path", "content"))
    frame = frame_indices(cells)
    pts = cells.floats("pts")
    key = cells.floats("key")
    box = corners(cells)
    track = indices(cells, "track")
    cells.refuse("key", ~(np.isnan(key) | (key == 0) | (key == 1)), "must be 0 or 1")
    there = ~np.isnan(box[:, 0])
    if (flat := there & ~(box[:, :2] < box[:, 2:]).all(axis=1)).any():
        row = int(flat.argmax())
        cells.fail(row, f"a box needs x1 < x2 and y1 < y2, got {box[row].tolist()}")
    rows: dict[tuple[str, str, int, str, int], list[int]] = {}
    for row, place_of_row in enumerate(zip(place, video, frame.tolist(), tag, track.tolist(), strict=True)):
        rows.setdefault(place_of_row, []).append(row)
    corrections = []
    for frame_rows in rows.values():
        first = frame_rows[0]
        checked = _kind(cells, first, kind[first], tag[first], boxes=bool(there[frame_rows].any()))
        for row in frame_rows:
            if not video[row]:
                cells.fail(row, "the video has no name")
            if kind[row] != checked:
                other = f"has another kind in row {cells.row[first]}"
                cells.fail(row, f"frame {frame[row]} of {video[row]!r} {other}")
            if not there[row] and len(frame_rows) > 1:
                cells.fail(row, "has no box, but other rows describe the same frame")
        time = None if np.isnan(pts[first]) else float(pts[first])
        boxes = tuple(Box(*box[row].tolist()) for row in frame_rows if there[row])
        sure = bool(np.isnan(key[first]) or key[first])
        number = int(track[first]) if track[first] >= 0 else None
        said = video[first], int(frame[first]), time, checked, tag[first], boxes, sure
        corrections.append(Correction(*said, origin[first], place[first], content[first], number))
    return corrections


def _kind(cells: Cells, row: int, kind: str, tag: str, *, boxes: bool) -> Kind:
    known = next((one for one in KINDS if one == kind), None)
    if known is None:
        cells.fail(row, f"kind must be one of {', '.join(KINDS)}, got {kind!r}{suggest(kind, KINDS)}")
    if known in {"box", "class"} and not boxes:
        cells.fail(row, f"kind is {kind}, but there is no box: fill x1, y1, x2 and y2, or write none")
    if known == "none" and boxes:
        cells.fail(row, "kind is none, but there is a box: clear x1, y1, x2 and y2, or write box")
    if boxes and not tag:
        cells.fail(row, "a box needs a class")
    return known
