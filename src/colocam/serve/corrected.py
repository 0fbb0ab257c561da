"""Videos as people corrected them: tables for export, and corrections for learning.

Also what another model changes: the boxes that moved most.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.boxes.iou import iou
from colocam.labels import Correction, Kind
from colocam.labels.table import TableRows, joined_rows, take_rows, write_table
from colocam.labels.table_files import file_name
from colocam.serve.film_data import Film, FilmIndex, FilmResults
from colocam.serve.marks import BOX, CHECKED, FOLLOWS, FOLLOWS_NONE, INTERPOLATED, NONE, Marks
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8

SAME = 0.95
"""Boxes that overlap by this IoU or more have not moved for a person who looks at them."""
SAME_OBJECT = 0.5
"""IoU from which a further object of the model is one that people have spoken of."""
APART = 12
"""Frames between two that are shown of one video, so that not all show one moment."""


def overlaps(before: FilmResults, after: FilmResults) -> Float64Array:
    """(N,) IoU of the boxes of two models in each frame of a video; 1 where both find none."""
    found = iou(before.rows.box, after.rows.box)
    neither: npt.NDArray[np.bool_] = np.isnan(before.rows.box[:, 0]) & np.isnan(after.rows.box[:, 0])
    return np.where(neither, 1.0, found)


def most_moved(overlap: Float64Array, most: int) -> list[int]:
    """Positions of the frames of a video whose boxes moved most, largest change first, apart from each other."""
    chosen: list[int] = []
    for position in np.argsort(overlap, kind="stable").tolist():
        if overlap[position] >= SAME or len(chosen) == most:
            break
        if all(abs(position - one) >= APART for one in chosen):
            chosen.append(position)
    return chosen


def corrected_rows(results: FilmResults, objects: Mapping[int, Marks]) -> TableRows:
    """The localisation table with what people changed; a drawn box has score and presence 1.

    Nobody has seen interpolated frames, so they keep the presence of the model. With several objects there is a row for
    each that has a box; its track is its number on the page less 1, and objects that only the model knows follow.
    """
    parts = {number: object_rows(results, marks) for number, marks in objects.items()}
    if len(parts) == 1 and not len(results.others.frame):
        return next(iter(parts.values()))
    there = {number: ~np.isnan(rows.box[:, 0]) for number, rows in parts.items()}
    offered = np.flatnonzero(others_left(results, objects))
    rest = take_rows(results.others, offered)
    known = np.unique(rest.track)
    rest = rest._replace(track=max(parts) + np.searchsorted(known, rest.track))
    nothing = ~(np.any(list(there.values()), axis=0) | np.isin(results.rows.frame, rest.frame))
    kept = [
        take_rows(
            rows._replace(track=np.where(there[number], number - 1, -1)),
            np.flatnonzero(there[number] | (nothing & objects[number].main)),
        )
        for number, rows in parts.items()
    ]
    return joined_rows([*kept, rest])


def object_rows(results: FilmResults, marks: Marks) -> TableRows:
    """A row per frame for one object, without a box where it is not; the numbers of the model are those of its own."""
    rows, source = results.rows, results.index.source
    predicted = marks.predicted(rows.box)
    drawn = np.isin(marks.state, (BOX, FOLLOWS)) | (marks.kept & _differs(marks.box, predicted))
    absent = np.isin(marks.state, (NONE, FOLLOWS_NONE)) | (marks.kept & np.isnan(marks.box[:, 0]))
    drawn &= ~absent
    size = np.array([source.width, source.height] * 2, float)
    box = np.where(drawn[:, None], np.clip(marks.box, 0, size), predicted)
    box[absent] = np.nan
    sure = np.isin(marks.state, CHECKED)
    here = np.isfinite(box[:, 0])
    foreign = ~marks.main | (here & np.isnan(rows.box[:, 0]))
    own = ~(drawn | absent | foreign)
    return rows._replace(
        tag=[new or said or old for new, said, old in zip(marks.tag, marks.accepted_tag, rows.tag, strict=True)],
        probability=np.where(marks.main, rows.probability, np.nan),
        box=box,
        score=np.where(drawn, 1.0, np.where(here, np.where(foreign, np.nan, rows.score), 0.0)),
        presence=np.where(sure, here.astype(float), rows.presence),
        margin=np.where(own, rows.margin, np.nan),
        track=np.where(here, np.maximum(rows.track, 0), rows.track),
        # A mask belongs to the box of the model: a drawn box has none.
        mask=[text if model else "" for model, text in zip(own.tolist(), rows.mask, strict=True)],
    )


def others_left(results: FilmResults, objects: Mapping[int, Marks]) -> npt.NDArray[np.bool_]:
    """(n,) which further objects of the model nobody has said anything about: those that overlap no other object."""
    others = results.others
    left, at = np.ones(len(others.frame), bool), results.other_positions
    for marks in objects.values():
        for boxes in (marks.box, marks.base):
            left &= ~(iou(others.box, boxes[at]) >= SAME_OBJECT)
    return left


def rows_at(results: FilmResults, objects: Mapping[int, Marks], rows: slice) -> tuple[FilmResults, dict[int, Marks]]:
    """Some rows of what a model found and of what people said, for :func:`corrected_rows`."""
    found = TableRows._make(column[rows] for column in results.rows)
    others = take_rows(results.others, np.flatnonzero(np.isin(results.others.frame, found.frame)))
    marks = {number: Marks._make(column[rows] for column in one) for number, one in objects.items()}
    return replace(results, rows=found, others=others), marks


def _differs(kept: Float64Array, predicted: Float64Array) -> npt.NDArray[np.bool_]:
    """(N,) whether an accepted box is another one than that of the model in use; pages round boxes."""
    same = np.isclose(kept, predicted, atol=0.01, equal_nan=True)
    return np.asarray(~np.all(same, axis=1), bool)


def filled(rows: TableRows, index: FilmIndex) -> TableRows:
    """A box without a mask gets its rectangle as mask, so that images of masks do not show background there."""
    masks = list(rows.mask)
    for row in np.flatnonzero(np.isfinite(rows.box[:, 0])).tolist():
        if not masks[row]:
            x1, y1, x2, y2 = np.rint(rows.box[row]).astype(int).tolist()
            rectangle = np.zeros((index.source.height, index.source.width), bool)
            rectangle[y1:y2, x1:x2] = True
            masks[row] = rle.encode(rectangle)
    return rows._replace(mask=masks)


def write_corrected(folder: Path, film: Film, index: FilmIndex, rows: TableRows) -> Path:
    """Write the corrected table of a video and its description into a folder, without its path on this machine."""
    table, source = folder / f"{file_name(film.name)}.csv", replace(index.source, shown_as=film.file)
    write_table(table, rows, source, ("track", "presence", "margin", "mask"))
    return table


def corrections_of(film: Film, results: FilmResults, objects: Mapping[int, Marks]) -> list[Correction]:
    """What people said about a video, one correction per frame and object; interpolated frames are no key frames.

    Frames that are asked about are none at all. Where something was said of one object, the others are listed as they
    are shown, without being key: a frame teaches where all its objects are.
    """
    parts = [(number, marks, object_rows(results, marks)) for number, marks in objects.items()]
    others = take_rows(results.others, np.flatnonzero(others_left(results, objects)))
    said = {number: _said(marks) for number, marks, _ in parts}
    found: list[Correction] = []
    for at in np.flatnonzero(np.any(list(said.values()), axis=0)).tolist():
        for number, marks, rows in parts:
            state, box, known = int(marks.state[at]), rows.box[at], bool(said[number][at])
            boxes = () if np.isnan(box[0]) else (Box(*box.tolist()),)
            if not known and not boxes and not marks.main[at]:
                continue  # it is elsewhere
            found.append(
                Correction(
                    video=film.name,
                    frame=int(rows.frame[at]),
                    pts=float(results.index.pts[at]),
                    kind=_kind(marks, at, results.rows.tag[at], boxes=bool(boxes)) if known else "accepted",
                    tag=rows.tag[at],
                    boxes=boxes,
                    key=known and state not in INTERPOLATED,
                    origin="page",
                    path=utf8(str(results.index.source.path)),
                    content=film.id,
                    track=number if len(parts) > 1 else None,
                )
            )
        for row in np.flatnonzero(others.frame == results.rows.frame[at]).tolist():
            seen = replace(found[-1], kind="accepted", tag=others.tag[row], key=False, track=None)
            found.append(replace(seen, boxes=(Box(*others.box[row].tolist()),)))
    return found


def _said(marks: Marks) -> npt.NDArray[np.bool_]:
    """(N,) whether something was said of an object, or follows; of objects that people added, a class says nothing."""
    named = marks.main & np.array([bool(tag) for tag in marks.tag])
    said: npt.NDArray[np.bool_] = np.isin(marks.state, (*CHECKED, *INTERPOLATED)) | named
    return said


def _kind(marks: Marks, at: int, predicted: str, *, boxes: bool) -> Kind:
    state = int(marks.state[at])
    if marks.tag[at] not in {"", predicted}:
        return "class" if boxes else "none"
    if state in {NONE, FOLLOWS_NONE}:
        return "none"
    return "box" if state in {BOX, FOLLOWS} else "accepted"
