"""Tables of ``colocam localize``, read into columns for the review; no video is needed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from colocam.errors import ColocamError
from colocam.review.doubt import Rows
from colocam.types import Float64Array

NEEDED = ("frame", "x1", "y1", "x2", "y2", "score")
OPTIONAL = ("pts", "presence", "margin")


def read_tables(tables: Sequence[Path]) -> Rows:
    """Read the rows of all tables; a video's number is the place of its table. Without times, frames are seconds."""
    parts = [_read(table, number) for number, table in enumerate(tables)]
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _read(table: Path, number: int) -> Rows:
    if not table.is_file():
        raise ColocamError(f"cannot read {table}: there is no such file")
    try:
        cells = pq.read_table(table) if table.suffix.lower() == ".parquet" else pacsv.read_csv(table)
    except (pa.ArrowException, OSError) as error:
        raise ColocamError(f"{table}: not a table of 'colocam localize' ({str(error).splitlines()[0]})") from error
    if missing := [name for name in NEEDED if cells.column_names.count(name) != 1]:
        raise ColocamError(f"{table}: not one column {missing[0]!r}: give a table of 'colocam localize'")
    columns = {name: _numbers(table, cells, name) for name in (*NEEDED, *OPTIONAL)}
    frame = columns["frame"]
    if not np.all(frame >= 0):
        raise ColocamError(f"{table}: a row has no frame number from 0: mend the table")
    order = np.argsort(frame, kind="stable")
    box = np.stack([columns[name] for name in ("x1", "y1", "x2", "y2")], axis=1)
    pts = np.where(np.isnan(columns["pts"]), frame, columns["pts"])
    return Rows(
        video=np.full(len(frame), number),
        frame=frame[order].astype(np.int64),
        pts=pts[order],
        box=np.where(np.isnan(box).any(1, keepdims=True), np.nan, box)[order],
        score=np.nan_to_num(columns["score"][order]),
        presence=columns["presence"][order],
        margin=columns["margin"][order],
    )


def _numbers(table: Path, cells: pa.Table, name: str) -> Float64Array:
    """Give a column as floats, not-a-number for empty cells and for a column that is not there."""
    if name not in cells.column_names:
        return np.full(cells.num_rows, np.nan)
    try:
        values = pc.cast(cells[name], pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise ColocamError(f"{table}: the column {name!r} holds something that is not a number") from error
    return np.asarray(values, np.float64)
