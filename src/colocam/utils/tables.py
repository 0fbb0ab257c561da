"""Tables that people write: CSV (also from spreadsheets) and parquet, as rows of text."""

import csv
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from colocam.errors import ColocamError

Row = dict[str, str]


def read_rows(path: Path, *, required: Iterable[str] = ()) -> list[Row]:
    """Read all rows; names of columns are lower-cased, missing cells are empty strings.

    Args:
        path: ``.parquet``, anything else is read as CSV (UTF-8, with or without a byte-order mark).
        required: columns that must exist.

    Raises:
        ColocamError: the file is missing, unreadable or empty, or a required column is not there.
    """
    if not path.is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    columns, rows = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    if missing := [name for name in required if name not in columns]:
        raise ColocamError(f"{path}: no column {missing[0]!r}; its columns are {', '.join(columns) or '(none)'}")
    if not rows:
        raise ColocamError(f"{path}: the table has no rows")
    return rows


def number(row: Row, column: str, where: str) -> float | None:
    """Give the value of a cell, None for an empty one; ``where`` names file and line in the error."""
    text = row.get(column, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ColocamError(f"{where}: {column} is {text!r}, which is not a number")
    return value


def _read_csv(path: Path) -> tuple[list[str], list[Row]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = [name.strip().lower() for name in next(reader, [])]
            lines = [[cell.strip() for cell in line] for line in reader if any(cell.strip() for cell in line)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ColocamError(f"{path}: not a CSV table in UTF-8 ({error})") from error
    if long := next((number for number, line in enumerate(lines, start=2) if len(line) > len(columns)), None):
        raise ColocamError(f"{path}, row {long}: more cells than columns: quote values that contain a comma")
    return columns, [dict(zip(columns, line + [""] * (len(columns) - len(line)), strict=True)) for line in lines]


def _read_parquet(path: Path) -> tuple[list[str], list[Row]]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ColocamError(f"{path}: not a parquet table ({str(error).splitlines()[0]})") from error
    columns = [name.lower() for name in table.column_names]
    text = [["" if value is None else _text(value) for value in column.to_pylist()] for column in table.columns]
    return columns, [dict(zip(columns, cells, strict=True)) for cells in zip(*text, strict=True)]


def _text(value: object) -> str:
    """Write a number as CSV would: a missing float is an empty cell, True is 1."""
    if isinstance(value, bool):
        return str(int(value))
    return "" if value != value else str(value)  # noqa: PLR0124 - only NaN differs from itself
