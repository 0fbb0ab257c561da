"""Videos as people corrected them: tables for export, corrections for learning, and labels that come back.

Also what another model changes: the boxes that moved most.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from colocam.boxes import rle
from colocam.boxes.iou import iou
from colocam.errors import ColocamError
from colocam.labels import Correction, Kind
from colocam.labels.apart import import_labels_apart, read_corrections_apart
from colocam.labels.formats.reading import unpacked
from colocam.labels.table import TableRows, write_table
from colocam.labels.table_files import file_name
from colocam.serve.film_data import Film, FilmIndex, FilmResults
from colocam.serve.guard import RefusalError
from colocam.serve.library import Library
from colocam.serve.marks import BOX, CHECKED, FOLLOWS, FOLLOWS_NONE, INTERPOLATED, NONE, Action, Change, Marks
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8

SAME = 0.95
"""Boxes that overlap by this IoU or more have not moved for a person who looks at them."""
APART = 12
"""Frames between two that are shown of one video, so that not all show one moment."""
CORRECTIONS = "corrections"
"""Name of the format that holds only what people said."""


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


def corrected_rows(results: FilmResults, marks: Marks, index: FilmIndex) -> TableRows:
    """The localisation table with what people changed; a drawn box has score and presence 1.

    Nobody has seen interpolated frames, so they keep the presence of the model.
    """
    rows = results.rows
    drawn = np.isin(marks.state, (BOX, FOLLOWS)) | (marks.kept & _differs(marks.box, rows.box))
    absent = np.isin(marks.state, (NONE, FOLLOWS_NONE)) | (marks.kept & np.isnan(marks.box[:, 0]))
    drawn &= ~absent
    size = np.array([index.source.width, index.source.height] * 2, float)
    box = np.where(drawn[:, None], np.clip(marks.box, 0, size), rows.box)
    box[absent] = np.nan
    sure = np.isin(marks.state, CHECKED)
    here = np.isfinite(box[:, 0])
    return rows._replace(
        tag=[new or said or old for new, said, old in zip(marks.tag, marks.accepted_tag, rows.tag, strict=True)],
        box=box,
        score=np.where(drawn, 1.0, np.where(here, rows.score, 0.0)),
        presence=np.where(sure, here.astype(float), rows.presence),
        margin=np.where(drawn | absent, np.nan, rows.margin),
        track=np.where(here, np.maximum(rows.track, 0), rows.track),
        # A mask belongs to the box of the model: a drawn box has none.
        mask=["" if other else text for other, text in zip((drawn | absent).tolist(), rows.mask, strict=True)],
    )


def rows_at(results: FilmResults, marks: Marks, rows: slice) -> tuple[FilmResults, Marks]:
    """Some rows of what a model found and of what people said, for :func:`corrected_rows`."""
    found = results._replace(rows=TableRows._make(column[rows] for column in results.rows))
    return found, Marks._make(column[rows] for column in marks)


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


def corrections_of(film: Film, results: FilmResults, marks: Marks, index: FilmIndex) -> list[Correction]:
    """What people said about a video, one correction per frame; interpolated frames are no key frames.

    Frames that are asked about are none at all.
    """
    rows = corrected_rows(results, marks, index)
    found: list[Correction] = []
    said = np.isin(marks.state, (*CHECKED, *INTERPOLATED)) | np.array([bool(tag) for tag in marks.tag])
    for at in np.flatnonzero(said).tolist():
        state, changed, box = int(marks.state[at]), marks.tag[at] not in {"", results.rows.tag[at]}, rows.box[at]
        boxes = () if np.isnan(box[0]) else (Box(*box.tolist()),)
        kind: Kind = "box" if state in {BOX, FOLLOWS} else "accepted"
        if changed:
            kind = "class" if boxes else "none"
        elif state in {NONE, FOLLOWS_NONE}:
            kind = "none"
        found.append(
            Correction(
                video=film.name,
                frame=int(rows.frame[at]),
                pts=float(index.pts[at]),
                kind=kind,
                tag=rows.tag[at],
                boxes=boxes,
                key=state not in INTERPOLATED,
                origin="page",
                path=utf8(str(index.source.path)),
                content=film.id,
            )
        )
    return found


def imported_edit(library: Library, film: Film, file: Path, format_: str) -> tuple[Change, list[str]]:
    """Read labels of a video from a file or a ZIP archive; those of other videos of the library are left out.

    Returns:
        The edit, which undo takes back as a whole, and what was left out, and why.
    """
    if film.results is None or film.index is None:
        raise RefusalError(404, "the model is not done with this video yet")
    classes = library.tags
    left_out: list[str] = []
    try:
        if format_ == CORRECTIONS:
            actions = _own_corrections(film, file, classes)
        else:
            tables = _tables(library, film, film.results, film.index, file.parent / "tables")
            found = import_labels_apart(file, format_, tables=tables, classes=classes, meant=file_name(film.name))
            left_out = [f"{count} × {why}" for why, count in found.left_out.items()]
            actions = _own_labels(film, file, found.corrections)
    except ColocamError as error:
        raise ColocamError(str(error).replace(str(file), "the file")) from error
    except ValidationError as error:
        raise RefusalError(422, f"the file has a value that cannot be used: {error.errors()[0]['msg']}") from error
    if not actions:
        raise RefusalError(422, "; ".join(["the file changes nothing in this video", *left_out[:5]]))
    return Change(kind="edit", actions=actions), left_out


def _tables(library: Library, film: Film, results: FilmResults, index: FilmIndex, folder: Path) -> list[Path]:
    """The table of a video, and tables without a box of its namesakes: labels that may mean either are refused."""
    folder.mkdir()
    tables = [write_corrected(folder, film, index, results.rows)]
    none = TableRows._make(column[:1] for column in results.rows)._replace(box=np.full((1, 4), np.nan), mask=[""])
    for other in library.films():
        if other.id == film.id or PurePath(other.file).stem.casefold() != PurePath(film.file).stem.casefold():
            continue
        if other.index is not None:
            rows = none._replace(frame=other.index.frames[:1])
            tables.append(write_corrected(folder, other, other.index, rows))
        elif other.state != "failed":
            raise RefusalError(404, f"{other.name} has the same file name and is not read yet: wait until it is")
    return tables


def _own_labels(film: Film, file: Path, found: Sequence[Correction]) -> list[Action]:
    """What labels change in a video."""
    own = [one for one in found if one.video == file_name(film.name)]
    if found and not own:
        raise ColocamError(f"{file} holds labels of {found[0].video}, not of {film.name}: open that video")
    return [action for one in own if one.kind != "accepted" for action in _actions(one)]


def _own_corrections(film: Film, file: Path, classes: Sequence[str]) -> list[Action]:
    """What people said about a video in corrections.csv; frames between marked ones follow from those.

    The content that a row states decides; without it the name, and the end of the path, if it is stated.
    """
    with unpacked(file) as place:
        files = sorted(place.rglob("*.csv")) if place.is_dir() else [place]
        if not files:
            raise ColocamError(f"{file}: no corrections.csv in the archive: export the format {CORRECTIONS!r}")
        found = read_corrections_apart(*files)
    mine = [one for one in found if _is_of(one, film)]
    if not mine:
        videos = sorted({one.video for one in found})
        if film.name in videos:
            raise ColocamError(f"{file}: its corrections of {film.name} are of another video of this name")
        listed = ", ".join(videos[:5]) or "nothing"
        raise ColocamError(f"{file}: no correction of {film.name}, only of {listed}: open that video")
    own = [one for one in mine if one.key]
    if strange := sorted({one.tag for one in own} - {"", *classes}):
        raise ColocamError(f"{file}: the model does not know the class {strange[0]!r}")
    return [action for one in own for action in _actions(one)]


def _is_of(one: Correction, film: Film) -> bool:
    if one.content:
        return one.content == film.id
    path = PurePath(one.path).parts
    same = not path or path in (PurePath(film.file).parts, film.path.parts[-len(path) :])
    return one.video == film.name and same


def _actions(one: Correction) -> list[Action]:
    start, stop = one.frame, one.frame + 1
    if one.kind == "accepted":
        shown = list(one.boxes[0]) if one.boxes else None
        return [Action(kind="accepted", start=start, stop=stop, boxes=[shown], tag=one.tag or None)]
    if not one.boxes:
        return [Action(kind="none", start=start, stop=stop)]
    actions = [Action(kind="box", start=start, stop=stop, box=list(one.boxes[0]))]
    return [*actions, Action(kind="class", start=start, stop=stop, tag=one.tag)] if one.kind == "class" else actions
