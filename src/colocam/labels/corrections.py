"""Corrections, what a person says about one frame of a video, and their only reader and writer."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from colocam.errors import ColocamError, suggest
from colocam.labels.table import CORNERS
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8, write_text
from colocam.utils.tables import Cells, csv_cell, read_cells

Kind = Literal["box", "none", "accepted", "class"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""box: the boxes were drawn or changed; none: the frame shows no object; accepted: the prediction is right, with or
without a box; class: the class was changed."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person says about one frame.

    Attributes:
        video: name of the video: that of its localisation table, or of its clip in a run.
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


COLUMNS = ("video", "frame", "pts", "kind", "class", *CORNERS, "key", "origin", "path", "content")


def write_corrections(path: str | Path, corrections: Iterable[Correction]) -> Path:
    """Write corrections as CSV; a file that exists is refused, unless it holds the same text.

    Numbers have as many digits as they need to be read back exactly.
    """
    path = Path(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in corrections:
        pts = "" if one.pts is None else one.pts
        names = [csv_cell(utf8(name)) for name in (one.video, one.tag, one.origin, one.path, one.content)]
        for box in one.boxes or (("",) * 4,):
            writer.writerow((names[0], one.frame, pts, one.kind, names[1], *box, int(one.key), *names[2:]))
    if path.is_file() and path.stat().st_size and path.read_bytes() != text.getvalue().encode():
        raise ColocamError(f"{path} exists, and corrections are never replaced: choose another file")
    write_text(path, text.getvalue())
    return path


def read_corrections(*paths: str | Path) -> list[Correction]:
    """Read corrections, in the order of the files and of the first row of each frame.

    Of a frame that several files correct, the last file counts, so give newer files later.

    Raises:
        ColocamError: names the file, the row, the value and what is expected.
    """
    found: dict[tuple[str, str, int], list[Correction]] = {}
    for path in paths:
        read: dict[tuple[str, str, int], list[Correction]] = {}
        for one in _read(Path(path)):
            read.setdefault((one.path, one.video, one.frame), []).append(one)
        found |= read
    return [one for frame in found.values() for one in frame]


def _read(path: Path) -> list[Correction]:
    cells = read_cells(path, required=("video", "frame", "kind", "class", *CORNERS))
    columns = {name: cells.text(name) for name in ("video", "kind", "class", "origin", "path", "content")}
    frame, pts, key = (cells.floats(name) for name in ("frame", "pts", "key"))
    cells.refuse("frame", ~((frame >= 0) & (frame % 1 == 0) & (frame < 2**32)), "is not a frame index from 0")
    cells.refuse("key", ~(np.isnan(key) | (key == 0) | (key == 1)), "must be 0 or 1")
    corners = np.stack([cells.floats(name) for name in CORNERS], axis=1)
    rows: dict[tuple[str, str, int, str], list[int]] = {}
    for row, (place, video, tag) in enumerate(zip(columns["path"], columns["video"], columns["class"], strict=True)):
        if not video:
            cells.fail(row, "the video has no name")
        rows.setdefault((place, video, int(frame[row]), tag), []).append(row)
    found = []
    for (place, video, index, tag), own in rows.items():
        first = own[0]
        kind = columns["kind"][first]
        for row in own[1:]:
            if columns["kind"][row] != kind:
                cells.fail(row, f"frame {index} of {video!r} has another kind in row {cells.row[first]}")
        time = None if np.isnan(pts[first]) else float(pts[first])
        boxes = _boxes(cells, corners, own)
        checked = _kind(cells, first, kind, tag, len(boxes))
        sure = bool(np.isnan(key[first]) or key[first])
        origin, content = columns["origin"][first], columns["content"][first]
        found.append(Correction(video, index, time, checked, tag, boxes, sure, origin, place, content))
    return found


def _boxes(cells: Cells, corners: Float64Array, own: Sequence[int]) -> tuple[Box, ...]:
    """The boxes of the rows of one frame."""
    boxes = []
    for row in own:
        box = Box(*corners[row].tolist())
        if all(np.isnan(box)):
            if len(own) > 1:
                cells.fail(row, "has no box, but other rows describe the same frame")
            continue
        if not (box.x1 < box.x2 and box.y1 < box.y2):
            cells.fail(row, f"a box needs x1 < x2 and y1 < y2, got {list(box)}")
        boxes.append(box)
    return tuple(boxes)


def _kind(cells: Cells, row: int, kind: str, tag: str, boxes: int) -> Kind:
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
