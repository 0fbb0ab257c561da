"""Films as people corrected them: localisation tables for export, and corrections for learning."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.labels import Correction, Kind
from colocam.labels.table import LocalizationTable, TableRows
from colocam.serve.film_index import FilmIndex
from colocam.serve.film_results import FilmResults
from colocam.serve.library import Film
from colocam.serve.marks import BOX, CHECKED, FOLLOWS, FOLLOWS_NONE, INTERPOLATED, NONE, Marks
from colocam.types import Box, Float64Array
from colocam.utils.files import utf8
from colocam.video.description import write_source


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


def write_corrected(table: Path, rows: TableRows, index: FilmIndex, shown_as: str) -> None:
    """Write a corrected table and the description of its film beside it, which exports call ``shown_as``."""
    with LocalizationTable(table, ("track", "presence", "margin", "mask"), index.source.pictures) as listed:
        listed.write_rows(rows)
    write_source(table, replace(index.source, shown_as=shown_as))


def corrections_of(film: Film, results: FilmResults, marks: Marks, index: FilmIndex) -> list[Correction]:
    """What people said about a film, one correction per frame; interpolated frames are no key frames.

    Frames that are asked about are none at all.
    """
    rows = corrected_rows(results, marks, index)
    found: list[Correction] = []
    said = np.isin(marks.state, (*CHECKED, *INTERPOLATED)) | np.array([bool(tag) for tag in marks.tag])
    for at in np.flatnonzero(said).tolist():
        state, changed = int(marks.state[at]), marks.tag[at] not in {"", results.rows.tag[at]}
        kind: Kind = "accepted"
        if state in {NONE, FOLLOWS_NONE}:
            kind = "none"
        elif changed:
            kind = "class"
        elif state in {BOX, FOLLOWS}:
            kind = "box"
        box = rows.box[at]
        boxes = () if np.isnan(box[0]) else (Box(*box.tolist()),)
        found.append(
            Correction(
                video=film.name,
                frame=int(rows.frame[at]),
                pts=float(index.pts[at]),
                kind="none" if changed and not boxes else kind,
                tag=rows.tag[at],
                boxes=boxes,
                key=state not in INTERPOLATED,
                origin="page",
                path=utf8(str(index.source.path)),
                content=film.id,
            )
        )
    return found
