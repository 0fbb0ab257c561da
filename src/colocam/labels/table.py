"""The localization table: one row per frame, or per object in it, as CSV or parquet. Its only reader and writer.

``colocam localize`` writes it; people may edit it; export and review read it.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.types import Float64Array, Localization
from colocam.utils.files import atomic_path, plain, utf8
from colocam.utils.progress import say
from colocam.utils.tables import Cells, csv_cell, read_cells, read_parquet
from colocam.video.description import SourceVideo, write_source

Integers = npt.NDArray[np.int64]
CORNERS = ("x1", "y1", "x2", "y2")
_TYPES = {
    "frame": "int64",
    "pts": "float64",
    "class": "string",
    "probability": "float64",
    **dict.fromkeys(CORNERS, "float64"),
    "score": "float64",
}
"""Column → type in parquet."""
COLUMNS: tuple[str, ...] = tuple(_TYPES)
"""Columns of every table; the box is in pixels of the original video and empty where there is none."""

_OPTIONAL = {
    "track": "int64",
    "presence": "float64",
    "margin": "float64",
    "mask": "string",
    "refined": "string",
    "shot_probability": "float64",
    "state": "string",
}
OPTIONAL: tuple[str, ...] = tuple(_OPTIONAL)
"""Columns on demand: track (index of the object), presence (0–1), margin, mask (COCO's compressed run lengths), refined
(name of the segmenter that gave mask and box), shot_probability (of the class in the shot, 0–1), state (one of
:data:`STATES`)."""
_EXPORTED = tuple(name for name in OPTIONAL if name not in {"shot_probability", "state"})  # which are the page's own
CHECKED, INTERPOLATED = STATES = ("checked", "interpolated")
"""What people said of a row: they set or checked it in this very frame, or it follows from such frames. Any other text
says nothing: the row is the model's."""

_PYTHON: dict[str, Callable[[Any], Any]] = {"int64": int, "float64": float, "string": str}
_NUMBERS = ("pts", "probability", "score", "presence", "margin", "shot_probability")

LARGEST = 2.0**53
"""Indices and times in seconds are smaller; floating point counts no further."""
BEYOND = 1.0
"""Pixels by which a box may pass the edge of the frame; it is then clipped."""
_ROWS_AT_ONCE = 4096
PARQUET: dict[str, Any] = {"write_page_checksum": True}
"""How tables are written as parquet: a flipped bit in their rows is noticed when they are read."""


class TableRows(NamedTuple):
    """Rows of a table in the order of frames; n rows.

    They are what a table holds of a :class:`colocam.types.Localization`, all but its heat map, in columns.

    Attributes:
        frame: (n,) index of the frame in the video, from 0.
        pts: (n,) presentation time in seconds, NaN where the table does not state it.
        tag: (n,) class, one line of text.
        probability: (n,) of the class in the frame, 0–1 or NaN.
        box: (n, 4) x1, y1, x2, y2 in pixels of the original video, NaN where there is no box.
        score: (n,) of the box, 0–1 or NaN.
        track: (n,) index of the object, −1 where the table states none.
        presence: (n,) probability that the object is in the frame, 0–1 or NaN.
        margin: (n,) how much better the box explains the map than any other place, at most 1 or NaN.
        mask: (n,) COCO's compressed run lengths, "" where there is no mask.
        refined: (n,) name of the segmenter that gave mask and box, "" where there was none.
        shot_probability: (n,) of the class in the shot, 0–1 or NaN.
        state: (n,) one of :data:`STATES`, "" for a row of the model.
    """

    frame: Integers
    pts: Float64Array
    tag: list[str]
    probability: Float64Array
    box: Float64Array
    score: Float64Array
    track: Integers
    presence: Float64Array
    margin: Float64Array
    mask: list[str]
    refined: list[str]
    shot_probability: Float64Array
    state: list[str]

    @classmethod
    def of(cls, localizations: Sequence[Localization]) -> Self:
        """The rows that :class:`LocalizationTable` would write of localizations, in the order of frames."""
        numbers = {name: [getattr(one, name) for one in localizations] for name in _NUMBERS}
        return cls(
            frame=np.array([one.frame for one in localizations], np.int64),
            tag=[one.tag for one in localizations],
            box=np.array([one.box or (None,) * 4 for one in localizations], np.float64).reshape(-1, 4),
            track=np.array([-1 if one.track is None else one.track for one in localizations], np.int64),
            mask=["" if one.mask is None else rle.encode(one.mask) for one in localizations],
            refined=[one.refined or "" for one in localizations],
            state=[""] * len(localizations),
            **{name: np.array(values, np.float64) for name, values in numbers.items()},
        )


def read_table(path: Path, video: SourceVideo | None = None, *, required: Sequence[str] = ()) -> TableRows:
    """Read a table as ``colocam localize`` wrote it, or as a person or a spreadsheet left it.

    Columns may stand in any order, and rows too; only ``frame`` and the four corners must exist.

    Args:
        path: CSV or parquet.
        video: the video of the table; its number of frames and its size are then checked, and boxes clipped to it.
        required: further columns that must exist.

    Raises:
        ColocamError: names the file, the row, the value and what is expected.
    """
    cells = read_cells(path, required=("frame", *CORNERS, *required))
    frame = frame_indices(cells)
    if video is not None:
        beyond = f"is beyond the {video.frames} frames of {video.file}: is it the table of another video?"
        cells.refuse("frame", frame >= video.frames, beyond)
    box = _boxes(cells, video)
    stated = cells.text("class")
    cleaned = {text: plain(text) for text in set(stated)}
    tag = [cleaned[text] for text in stated]
    there = ~np.isnan(box[:, 0])
    if "class" in cells.columns:
        cells.refuse("class", there & np.array([not one for one in tag]), "is not a class, but the row has a box")
    mask = _masks(cells, there, video)
    refined = cells.text("refined")
    state = [text if text in STATES else "" for text in cells.text("state")]
    cells.refuse("pts", np.abs(cells.floats("pts")) >= LARGEST, "is not a time in seconds")
    order = np.argsort(frame, kind="stable")
    numbers = {name: cells.floats(name)[order] for name in _NUMBERS}
    return TableRows(
        frame=frame[order],
        tag=[tag[row] for row in order],
        box=box[order],
        track=indices(cells, "track")[order],
        mask=[mask[row] for row in order],
        refined=[plain(refined[row]) for row in order],
        state=[state[row] for row in order],
        **numbers,
    )


def take_rows(rows: TableRows, chosen: Integers) -> TableRows:
    """Copies of some rows (k,), in this order."""
    columns = (
        [column[row] for row in chosen.tolist()] if isinstance(column, list) else column[chosen] for column in rows
    )
    return TableRows._make(columns)


def joined_rows(parts: Sequence[TableRows]) -> TableRows:
    """The rows of several tables of one video, by frame; in one frame in the order of the tables."""
    columns = (
        [one for column in columns for one in column] if isinstance(columns[0], list) else np.concatenate(columns)
        for columns in zip(*parts, strict=True)
    )
    rows = TableRows._make(columns)
    return take_rows(rows, np.argsort(rows.frame, kind="stable"))


def indices(cells: Cells, column: str) -> Integers:
    """(n,) whole numbers from 0; −1 for an empty cell."""
    numbers = cells.floats(column)
    wrong = ~np.isnan(numbers) & ~((numbers >= 0) & (numbers < LARGEST) & (numbers % 1 == 0))
    cells.refuse(column, wrong, f"is not a {column} index: give a whole number from 0")
    return np.where(np.isnan(numbers), -1, numbers).astype(np.int64)


def frame_indices(cells: Cells) -> Integers:
    """(n,) indices of frames, from 0; no cell may be empty."""
    frame = indices(cells, "frame")
    cells.refuse("frame", frame < 0, "is not a frame index: give a whole number from 0")
    return frame


def corners(cells: Cells) -> Float64Array:
    """(n, 4) x1, y1, x2, y2; NaN for a row without a box."""
    box = np.stack([cells.floats(corner) for corner in CORNERS], axis=1)
    empty = np.isnan(box)
    if (partly := empty.any(1) & ~empty.all(1)).any():
        cells.fail(int(partly.argmax()), "x1, y1, x2 and y2 must all be given or all be empty")
    for index, column in enumerate(CORNERS):
        cells.refuse(column, np.abs(box[:, index]) >= LARGEST, "is not a position in pixels")
    return box


def _boxes(cells: Cells, video: SourceVideo | None) -> Float64Array:
    """(n, 4) boxes, clipped to the frame where its size is known; one without area counts as none."""
    box = corners(cells)
    if (turned := (box[:, 2:] < box[:, :2]).any(axis=1)).any():
        row = int(turned.argmax())
        cells.fail(row, f"a box needs x1 < x2 and y1 < y2, got {box[row].tolist()}")
    if video is not None:
        size = np.array([video.width, video.height] * 2, float)
        if (outside := np.any((box < -BEYOND) | (box > size + BEYOND), axis=1)).any():
            row = int(outside.argmax())
            frame = f"the frame of {video.width}×{video.height}: is it the table of another video?"
            cells.fail(row, f"the box {box[row].tolist()} lies outside {frame}")
        box = np.clip(box, 0, size)
    flat: npt.NDArray[np.bool_] = np.any(box[:, 2:] <= box[:, :2], axis=1)
    if flat.any():
        say(f"{cells.path}: {int(flat.sum())} boxes have no area and were skipped")
    return np.where(flat[:, None], np.nan, box)


def _masks(cells: Cells, there: npt.NDArray[np.bool_], video: SourceVideo | None) -> list[str]:
    """Masks of the rows that have a box, checked against the size of the frame where it is known."""
    masks = [text if box else "" for text, box in zip(cells.text("mask"), there.tolist(), strict=True)]
    for row, text in enumerate(masks):
        if text and video is not None:
            try:
                rle.checked_counts(text, video.height, video.width)
            except ColocamError as error:
                cells.fail(row, str(error))
    return masks


class LocalizationTable:
    """Write a table row by row, CSV or parquet by the ending of ``path``; a context manager.

    The file appears when the context ends without an error. Numbers in the CSV have as many digits as they need to
    be read back exactly. Memory does not grow with the number of rows.

    Args:
        path: ends in ``.csv`` or ``.parquet``.
        extra: which of :data:`OPTIONAL` to write after :data:`COLUMNS`.
        images: file names of the frames, where the video is a folder of images; the last column is then ``picture``.
        video: name of the video; the first column is then ``video``.
    """

    def __init__(
        self, path: Path, extra: Sequence[str] = (), images: Sequence[str] = (), video: str | None = None
    ) -> None:
        if path.suffix.lower() not in {".csv", ".parquet"}:
            raise ColocamError(f"cannot write {path}: a localization table ends in .csv or .parquet")
        self._path = path
        self._images = images
        self._video = () if video is None else (video,)
        self._extra = tuple(extra)
        columns = {**_TYPES, **{name: _OPTIONAL[name] for name in extra}}
        self._kinds = [_PYTHON[kind] for kind in columns.values()]
        first, last = {"video": "string"} if self._video else {}, {"picture": "string"} if images else {}
        self._types = {**first, **columns, **last}
        self._rows: list[tuple[Any, ...]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self._path))
            opened = self._open_csv if self._path.suffix.lower() == ".csv" else self._open_parquet
            self._put = opened(temporary, stack)
            stack.push(lambda kind, *_: self._flush() if kind is None and self._rows else None)
            self._stack = stack.pop_all()
        return self

    def _open_csv(self, temporary: Path, stack: ExitStack) -> Callable[[list[tuple[Any, ...]]], None]:
        writer = csv.writer(stack.enter_context(temporary.open("w", encoding="utf-8", newline="")), lineterminator="\n")
        writer.writerow(self._types)
        return lambda rows: writer.writerows(map(csv_cell, row) for row in rows)

    def _open_parquet(self, temporary: Path, stack: ExitStack) -> Callable[[list[tuple[Any, ...]]], None]:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415

        schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in self._types.items()])
        self._parquet = stack.enter_context(pq.ParquetWriter(temporary, schema, **PARQUET))
        return lambda rows: self._parquet.write_table(pa.Table.from_arrays([*zip(*rows, strict=True)], schema=schema))

    def write(self, localization: Localization) -> None:
        """Append the row of one frame or of one object in it."""
        optional = [getattr(localization, name) for name in self._extra]
        optional = [rle.encode(value) if isinstance(value, np.ndarray) else value for value in optional]
        # A file name that is not UTF-8 can reach the tag; neither format can hold it as it is.
        tag, box = utf8(localization.tag), localization.box or (None,) * 4
        row = (localization.frame, localization.pts, tag, localization.probability, *box, localization.score, *optional)
        self._append([None if value is None else kind(value) for value, kind in zip(row, self._kinds, strict=True)])

    def write_rows(self, rows: TableRows) -> None:
        """Append rows that were read from a table."""
        pts, probability, score, *box = map(_cells, (rows.pts, rows.probability, rows.score, *rows.box.T))
        optional = (_cells(getattr(rows, name)) for name in self._extra)
        columns = (rows.frame.tolist(), pts, rows.tag, probability, *box, score, *optional)
        for row in zip(*columns, strict=True):
            self._append(row)

    def add_metadata(self, metadata: dict[str, str]) -> None:
        """Store texts by their names in a parquet table; after the rows, since they may tell of all of them."""
        self._parquet.add_key_value_metadata(metadata)

    def _append(self, row: Sequence[Any]) -> None:
        image = (self._images[row[0]],) if self._images else ()
        self._rows.append((*self._video, *row, *image))
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._put(self._rows)
        self._rows.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)


def write_table(
    path: Path, rows: TableRows, source: SourceVideo, extra: Sequence[str] = _EXPORTED, video: str | None = None
) -> None:
    """Write the table of a video and its description beside it; see :class:`LocalizationTable`.

    The column ``state`` is written where a row has one.
    """
    if "state" not in extra and any(rows.state):
        extra = (*extra, "state")
    with LocalizationTable(path, extra, source.pictures, video) as table:
        table.write_rows(rows)
    write_source(path, source)


def join_tables(parts: Iterable[tuple[Path, int]], target: Path, metadata: dict[str, str]) -> None:
    """Write the rows of parquet tables one after the other, with the same bytes as if they were written at once.

    Args:
        parts: tables with the same columns, and what to add to the column ``track`` of each.
        target: ends in ``.parquet``; it appears when it is complete.
        metadata: see :meth:`LocalizationTable.add_metadata`.

    Raises:
        DamagedTableError: one of the tables cannot be read.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    with ExitStack() as stack:
        temporary = stack.enter_context(atomic_path(target))
        waiting: pa.Table | None = None
        for path, first_track in parts:
            rows = read_parquet(path)
            if "track" in rows.column_names:
                at = rows.column_names.index("track")
                rows = rows.set_column(at, rows.field(at), pc.add(rows.column(at), first_track))
            if waiting is None:
                waiting = rows.slice(0, 0)
                writer = stack.enter_context(pq.ParquetWriter(temporary, rows.schema, **PARQUET))
            waiting = pa.concat_tables([waiting, rows])
            while len(waiting) >= _ROWS_AT_ONCE:
                writer.write_table(waiting.slice(0, _ROWS_AT_ONCE).combine_chunks())
                waiting = waiting.slice(_ROWS_AT_ONCE)
        if waiting is not None and len(waiting):
            writer.write_table(waiting.combine_chunks())
        if waiting is not None:
            writer.add_key_value_metadata(metadata)


def _cells(column: npt.NDArray[Any] | list[str]) -> list[Any]:
    """Values of a column of rows, None where the table states none: NaN, track −1, and empty text."""
    if isinstance(column, list):
        return [text or None for text in column]
    stated = column >= 0 if column.dtype.kind == "i" else ~np.isnan(column)
    return [value if known else None for value, known in zip(column.tolist(), stated.tolist(), strict=True)]
