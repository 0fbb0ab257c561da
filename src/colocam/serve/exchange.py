"""Videos as people corrected them, out of the page: tables for export, and corrections for learning.

Tests: tests/serve/test_one_rule.py, tests/serve/test_exports_hold_the_screen.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.boxes.iou import iou
from colocam.labels import Correction as FrameCorrection
from colocam.labels import Kind
from colocam.labels.table import TableRows, joined_rows, take_rows, write_table
from colocam.labels.table_files import file_name
from colocam.serve.marks import (
    BOX,
    CHECKED,
    FOLLOWS,
    FOLLOWS_NONE,
    INTERPOLATED,
    NONE,
    PREDICTED,
    SHOWS_BOX,
    Marks,
    frame_states,
)
from colocam.serve.video_data import Video, VideoIndex, VideoResults
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8

SAME_OBJECT = 0.5
"""IoU from which a further object of the model is one that people have spoken of."""
CORRECTIONS = "corrections"
"""Name of the format that holds only what people said."""


def corrected_rows(results: VideoResults, objects: Mapping[int, Marks]) -> TableRows:
    """The localization table with what people changed; a drawn box has score and presence 1.

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


def object_rows(results: VideoResults, marks: Marks) -> TableRows:
    """A row per frame for one object, without a box where it is not; the numbers of the model are those of its own."""
    rows, source = results.rows, results.index.source
    predicted = marks.predicted(rows.box)
    drawn = np.isin(marks.state, SHOWS_BOX) | (marks.kept & _differs(marks.box, predicted))
    absent = np.isin(marks.state, (NONE, FOLLOWS_NONE)) | (marks.kept & np.isnan(marks.box[:, 0]))
    drawn &= ~absent
    size = np.array([source.width, source.height] * 2, float)
    box = np.where(drawn[:, None], np.clip(marks.box, 0, size), predicted)
    box[absent] = np.nan
    sure = np.isin(marks.state, CHECKED)
    here = np.isfinite(box[:, 0])
    foreign = ~marks.main | (here & np.isnan(rows.box[:, 0]))
    untouched = ~(drawn | absent | foreign)
    return rows._replace(
        tag=[new or said or old for new, said, old in zip(marks.tag, marks.accepted_tag, rows.tag, strict=True)],
        probability=np.where(marks.main, rows.probability, np.nan),
        box=box,
        score=np.where(drawn, 1.0, np.where(here, np.where(foreign, np.nan, rows.score), 0.0)),
        presence=np.where(sure, here.astype(float), rows.presence),
        margin=np.where(untouched, rows.margin, np.nan),
        track=np.where(here, np.maximum(rows.track, 0), rows.track),
        # A mask belongs to the box of the model: a drawn box has none.
        mask=[text if model else "" for model, text in zip(untouched.tolist(), rows.mask, strict=True)],
    )


def others_left(results: VideoResults, objects: Mapping[int, Marks]) -> npt.NDArray[np.bool_]:
    """(n,) which further objects of the model nobody has said anything about: those that overlap no other object."""
    others = results.others
    at = results.other_positions
    unsaid = np.ones(len(others.frame), bool)
    for marks in objects.values():
        for boxes in (marks.box, marks.base):
            unsaid &= ~(iou(others.box, boxes[at]) >= SAME_OBJECT)
    return unsaid


def known_states(results: VideoResults, objects: Mapping[int, Marks]) -> npt.NDArray[np.uint8]:
    """(N,) what is known of whole frames; one with an object that only the model knows is a prediction."""
    state = frame_states(objects.values())
    state[results.other_positions[others_left(results, objects)]] = PREDICTED
    return state


def rows_at(results: VideoResults, objects: Mapping[int, Marks], rows: slice) -> tuple[VideoResults, dict[int, Marks]]:
    """Some rows of what a model found and of what people said, for :func:`corrected_rows`."""
    table = TableRows._make(column[rows] for column in results.rows)
    others = take_rows(results.others, np.flatnonzero(np.isin(results.others.frame, table.frame)))
    marks = {number: Marks._make(column[rows] for column in columns) for number, columns in objects.items()}
    return replace(results, rows=table, others=others), marks


def _differs(kept: Float64Array, predicted: Float64Array) -> npt.NDArray[np.bool_]:
    """(N,) whether an accepted box is another one than that of the model in use; pages round boxes."""
    same = np.isclose(kept, predicted, atol=0.01, equal_nan=True)
    return np.asarray(~np.all(same, axis=1), bool)


def filled(rows: TableRows, index: VideoIndex) -> TableRows:
    """A box without a mask gets its rectangle as mask, so that images of masks do not show background there."""
    masks = list(rows.mask)
    for row in np.flatnonzero(np.isfinite(rows.box[:, 0])).tolist():
        if not masks[row]:
            x1, y1, x2, y2 = np.rint(rows.box[row]).astype(int).tolist()
            rectangle = np.zeros((index.source.height, index.source.width), bool)
            rectangle[y1:y2, x1:x2] = True
            masks[row] = rle.encode(rectangle)
    return rows._replace(mask=masks)


def write_corrected(folder: Path, video: Video, index: VideoIndex, rows: TableRows) -> Path:
    """Write the corrected table of a video and its description into a folder, without its path on this machine."""
    table, source = folder / f"{file_name(video.name)}.csv", replace(index.source, shown_as=video.file)
    write_table(table, rows, source, ("track", "presence", "margin", "mask"))
    return table


def corrections_of(video: Video, results: VideoResults, objects: Mapping[int, Marks]) -> list[FrameCorrection]:
    """What people said about a video, one correction per frame and object; interpolated frames are no key frames.

    Frames that are asked about are none at all. Where something was said of one object, the others are listed as they
    are shown, without being key: a frame teaches where all its objects are.
    """
    parts = [(number, marks, object_rows(results, marks)) for number, marks in objects.items()]
    others = take_rows(results.others, np.flatnonzero(others_left(results, objects)))
    said = {number: _said(marks) for number, marks, _ in parts}
    corrections: list[FrameCorrection] = []
    for at in np.flatnonzero(np.any(list(said.values()), axis=0)).tolist():
        for number, marks, rows in parts:
            state, box, known = int(marks.state[at]), rows.box[at], bool(said[number][at])
            boxes = () if np.isnan(box[0]) else (Box(*box.tolist()),)
            if not known and not boxes and not marks.main[at]:
                continue  # it is elsewhere
            corrections.append(
                FrameCorrection(
                    video=video.name,
                    frame=int(rows.frame[at]),
                    pts=float(results.index.pts[at]),
                    kind=_kind(marks, at, results.rows.tag[at], boxes=bool(boxes)) if known else "accepted",
                    tag=rows.tag[at],
                    boxes=boxes,
                    key=known and state not in INTERPOLATED,
                    origin="page",
                    path=utf8(str(results.index.source.path)),
                    content=video.id,
                    track=number if len(parts) > 1 else None,
                )
            )
        for row in np.flatnonzero(others.frame == results.rows.frame[at]).tolist():
            seen = replace(corrections[-1], kind="accepted", tag=others.tag[row], key=False, track=None)
            corrections.append(replace(seen, boxes=(Box(*others.box[row].tolist()),)))
    return corrections


def _said(marks: Marks) -> npt.NDArray[np.bool_]:
    """(N,) whether something was said of an object, or follows; of objects that people added, a class says nothing."""
    named = marks.main & np.array([bool(tag) for tag in marks.tag])
    said: npt.NDArray[np.bool_] = np.isin(marks.state, (*CHECKED, *INTERPOLATED)) | named
    return said


def key_frames(marks: Marks) -> npt.NDArray[np.bool_]:
    """(N,) whether a person said something about the object in a frame; what only follows does not count."""
    return _said(marks) & ~np.isin(marks.state, INTERPOLATED)


def _kind(marks: Marks, at: int, predicted: str, *, boxes: bool) -> Kind:
    state = int(marks.state[at])
    if marks.tag[at] not in {"", predicted}:
        return "class" if boxes else "none"
    if state in {NONE, FOLLOWS_NONE}:
        return "none"
    return "box" if state in {BOX, FOLLOWS} else "accepted"
