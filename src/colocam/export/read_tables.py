"""Tables of boxes, as ``colocam localize`` writes them and people edit them, read into columns."""

from dataclasses import replace
from pathlib import Path
from unicodedata import category

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Float64Array
from colocam.utils.files import utf8
from colocam.utils.progress import say
from colocam.video.description import SourceVideo, probe_source, read_source

CORNERS = ("x1", "y1", "x2", "y2")
REQUIRED = ("frame", "class", *CORNERS)
_BREAKS = {"Cc", "Zl", "Zp"}  # control characters and separators of lines
BEYOND = 1.0
"""Pixels by which a box may pass the picture's edge; it is then cut off there."""


def read_videos(tables: list[Path], videos: list[Path]) -> list[LabelledVideo]:
    """Read the tables of an export, each with its video: the file given, or what lies beside the table."""
    if videos and len(videos) != len(tables):
        raise ColocamError(f"{len(tables)} tables but {len(videos)} times --video: give one for each table, in order")
    read: list[LabelledVideo] = []
    for number, table in enumerate(tables):
        rows = _read(table)
        source = probe_source(videos[number]) if videos else read_source(table)
        name = plain(table.stem).strip(". ") or "video"
        taken = {video.name for video in read}
        unique = next(one for one in (name, *(f"{name}-{n}" for n in range(2, len(tables) + 1))) if one not in taken)
        read.append(_labelled(table, rows, source, unique))
    return _with_picture_names(read)


def _with_picture_names(videos: list[LabelledVideo]) -> list[LabelledVideo]:
    """Pictures of folders keep their names, below that of the table where there are several tables.

    Where two would then have one name, all are numbered as the frames of films are.
    """
    alone = len(videos) == 1
    names = [tuple(plain(n) if alone else f"{v.name}_{plain(n)}" for n in v.source.pictures) for v in videos]
    stems = [name.rpartition(".")[0].casefold() for own in names for name in own]
    if len(set(stems)) < len(stems):
        return videos
    return [replace(video, pictures=own) for video, own in zip(videos, names, strict=True)]


def plain(text: str) -> str:
    """Make one line of printable characters that UTF-8 and XML can hold."""
    shown = (" " if category(c) in _BREAKS or c in "\ufffe\uffff" else c for c in utf8(text))
    return " ".join("".join(shown).split())


def _labelled(table: Path, rows: pa.Table, source: SourceVideo, name: str) -> LabelledVideo:
    frame = _numbers(table, rows, "frame")
    _refuse(table, "frame", rows, ~((frame >= 0) & (frame % 1 == 0)), "is not a frame number from 0")
    beyond = f"is beyond the video's {source.frames} frames: is it of another video?"
    _refuse(table, "frame", rows, frame >= source.frames, beyond)
    order = np.argsort(frame, kind="stable")
    box = np.stack([_numbers(table, rows, corner) for corner in CORNERS], axis=1)
    box = _checked_boxes(table, rows, box, source)
    stated = _text(rows, "class")
    cleaned = {text: plain(text) for text in set(stated)}
    tag = [cleaned[text] for text in stated]
    missing = ~np.isnan(box[:, 0]) & np.array([not one for one in tag], bool)
    _refuse(table, "class", rows, missing, "is no class, yet the row has a box")
    track = _numbers(table, rows, "track")
    _refuse(table, "track", rows, ~np.isnan(track) & ~((track >= 0) & (track % 1 == 0)), "is not a track number from 0")
    pts = _numbers(table, rows, "pts")
    number = frame.astype(np.int64)
    mask = _checked_masks(table, rows, box, source)
    return LabelledVideo(
        name=name,
        source=source,
        frame=number[order],
        pts=np.where(np.isnan(pts), frame / float(source.fps), pts)[order],
        tag=[tag[row] for row in order],
        box=box[order],
        probability=_numbers(table, rows, "probability")[order],
        score=_numbers(table, rows, "score")[order],
        presence=_numbers(table, rows, "presence")[order],
        track=np.where(np.isnan(track), -1, track).astype(np.int64)[order],
        mask=[mask[row] for row in order],
    )


def _read(path: Path) -> pa.Table:
    """Read all columns as text or as what parquet holds; names are lower-cased."""
    if not path.is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    try:
        rows = pq.read_table(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "parquet table" if path.suffix.lower() == ".parquet" else "CSV table in UTF-8"
        raise ColocamError(f"{path}: not a {kind} ({str(error).splitlines()[0]})") from error
    rows = rows.rename_columns([column.strip().lower() for column in rows.column_names])
    if missing := [column for column in REQUIRED if rows.column_names.count(column) != 1]:
        columns = ", ".join(rows.column_names) or "(none)"
        raise ColocamError(f"{path}: not one column {missing[0]!r}; its columns are {columns}")
    if not rows.num_rows:
        raise ColocamError(f"{path}: the table has no rows")
    return rows


def _read_csv(path: Path) -> pa.Table:
    parse = pacsv.ParseOptions(newlines_in_values=True)
    with pacsv.open_csv(path, parse_options=parse) as reader:
        columns = reader.schema.names
    convert = pacsv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False)
    return pacsv.read_csv(path, parse_options=parse, convert_options=convert)


def _text(rows: pa.Table, column: str) -> list[str]:
    if column not in rows.column_names:
        return [""] * rows.num_rows
    return ["" if value is None else str(value) for value in rows[column].to_pylist()]


def _numbers(table: Path, rows: pa.Table, column: str) -> Float64Array:
    """Give a column as floats, not-a-number for empty cells and for a column that is not there."""
    if column not in rows.column_names:
        return np.full(rows.num_rows, np.nan)
    cells = rows[column]
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        cells = pc.utf8_trim_whitespace(cells)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    try:
        values = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        values = np.array([_number(cell) for cell in cells.to_pylist()])
    values = np.asarray(values, np.float64)
    _refuse(table, column, rows, np.isinf(values), "is not a number")
    return values


def _number(cell: object) -> float:
    try:
        return np.nan if cell is None else float(str(cell))
    except ValueError:
        return np.inf


def _refuse(table: Path, column: str, rows: pa.Table, wrong: npt.NDArray[np.bool_], says: str) -> None:
    """Complain about the first wrong cell of a column."""
    if wrong.any():
        row = int(wrong.argmax())
        raise ColocamError(f"{table}, row {row + 2}: {column} {str(rows[column][row])!r} {says}")


def _checked_boxes(table: Path, rows: pa.Table, box: Float64Array, source: SourceVideo) -> Float64Array:
    """Cut boxes at the picture's edges; those without any area become no box."""
    empty = np.isnan(box)
    _refuse(
        table,
        "x1",
        rows,
        np.any(empty, axis=1) & ~np.all(empty, axis=1),
        "and its fellows: a box needs all four corners",
    )
    turned = (box[:, 2] < box[:, 0]) | (box[:, 3] < box[:, 1])
    _refuse(table, "x1", rows, turned, "and its fellows: a box needs x1 < x2 and y1 < y2")
    size = np.array([source.width, source.height] * 2, float)
    outside = np.any((box < -BEYOND) | (box > size + BEYOND), axis=1)
    picture = f"the picture of {source.width}×{source.height}: is it of another video?"
    _refuse(table, "x1", rows, outside, f"and its fellows: the box lies outside {picture}")
    box = np.clip(box, 0, size)
    flat = (box[:, 2] <= box[:, 0]) | (box[:, 3] <= box[:, 1])
    if flat.any():
        say(f"{table}: {int(flat.sum())} boxes have no area and were left out")
    return np.where(flat[:, None], np.nan, box)


def _checked_masks(table: Path, rows: pa.Table, box: Float64Array, source: SourceVideo) -> list[str]:
    """Check that each mask fills the picture; rows without a box have none."""
    masks = [text if there else "" for text, there in zip(_text(rows, "mask"), ~np.isnan(box[:, 0]), strict=True)]
    for row, text in enumerate(masks):
        if text:
            try:
                rle.checked_counts(text, source.height, source.width)
            except ColocamError as error:
                raise ColocamError(f"{table}, row {row + 2}: {error}") from error
    return masks
