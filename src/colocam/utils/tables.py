"""Read tables that people write and spreadsheets save: CSV and parquet, as columns of cells or as rows of text.

A CSV file is UTF-8, with or without a byte-order mark, separated by commas, semicolons or tabs. Where commas do not
separate cells, ``1,5`` is the number 1.5. Names of columns are lower-cased; empty rows are skipped. Text that a
spreadsheet would run has an apostrophe before it, see :func:`csv_cell`.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line
from colocam.types import Float64Array
from colocam.utils.files import stored

if TYPE_CHECKING:
    import pyarrow as pa

Column: TypeAlias = "npt.NDArray[Any] | pa.ChunkedArray"
"""Cells of a column: texts from CSV (:data:`TEXT`), the stored type from parquet."""
TEXT = np.dtypes.StringDType()
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")
FORMULA = re.compile(r"\s*'*\s*[=+\-@]")
"""Text that a spreadsheet takes for a formula, with any number of apostrophes before it."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
ROWS_AT_ONCE = 1 << 13
MOST_COLUMNS = 1 << 14
"""As many as a spreadsheet has."""
# Masks may be longer than the usual limit, which is one for all threads of the process.
csv.field_size_limit(2**31 - 1)


def csv_cell(value: object) -> object:
    """A value as it is written into CSV: text that begins with ``=``, ``+``, ``-`` or ``@`` gets an apostrophe.

    A spreadsheet would run such text as a formula. Numbers stay as they are; :func:`read_cells` takes the apostrophe
    away.
    """
    if isinstance(value, str) and FORMULA.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV; None is an empty cell, texts are those of :func:`csv_cell`, numbers have all of their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(csv_cell, row) for row in rows)
    return text.getvalue()


def _own_text(cell: str) -> str:
    """The text that :func:`csv_cell` wrote."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


class DamagedTableError(ColocamError):
    """A file that is no parquet table, or whose checksums are wrong; ``path`` names it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class Cells(NamedTuple):
    """The cells of a table by column; n rows.

    Attributes:
        path: the file, for errors.
        columns: cells of each column.
        row: (n,) row of the file, counted as a spreadsheet does: the header is row 1.
    """

    path: Path
    columns: dict[str, Column]
    row: npt.NDArray[np.int64]

    def text(self, column: str) -> list[str]:
        """(n,) cells as text; empty for an empty cell and for a column that does not exist."""
        if column not in self.columns:
            return [""] * len(self.row)
        cells = self.columns[column]
        return [*cells.tolist()] if isinstance(cells, np.ndarray) else [_text(value) for value in cells.to_pylist()]

    def floats(self, column: str) -> Float64Array:
        """(n,) cells as numbers; NaN for an empty cell and for a column that does not exist."""
        if column not in self.columns:
            return np.full(len(self.row), np.nan)
        cells = self.columns[column]
        try:
            numbers = _numbers(cells) if isinstance(cells, np.ndarray) else _arrow_numbers(cells)
        except (ValueError, NotImplementedError):  # also what pyarrow raises, of columns that are no numbers
            numbers = np.array([_float(text) for text in self.text(column)])
        self.refuse(column, np.isinf(numbers), "is not a number")
        return numbers

    def refuse(self, column: str, wrong: npt.NDArray[np.bool_], problem: str) -> None:
        """Raise an error that names the first cell of a column for which ``wrong`` (n,) is true."""
        if wrong.any():
            index = int(wrong.argmax())
            self.fail(index, f"{column} {self.text(column)[index]!r} {problem}")

    def fail(self, index: int, problem: str) -> NoReturn:
        """Raise an error that names the file and the row."""
        raise ColocamError(f"{self.path}, row {self.row[index]}: {problem}")


class Row(dict[str, str]):
    """The cells of one row as text, by column; ``where`` names file and row for errors."""

    where: str = ""

    def number(self, column: str) -> float | None:
        """The number in a cell; None for an empty one."""
        value = _float(text := self.get(column, ""))
        if np.isinf(value) or (text and np.isnan(value)):
            raise ColocamError(f"{self.where}: {column} is {text!r}, which is not a number")
        return value if text else None


def read_cells(path: Path, *, required: Iterable[str] = ()) -> Cells:
    """Read a ``.parquet`` file, or any other as CSV.

    Raises:
        ColocamError: the file is missing, unreadable or without rows, or a ``required`` column does not exist.
    """
    if not stored(path).is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    cells = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    if missing := [name for name in required if name not in cells.columns]:
        names = ", ".join(cells.columns) or "(none)"
        raise ColocamError(f"{path}: no column {missing[0]!r}; its columns are {names}")
    if not len(cells.row):
        raise ColocamError(f"{path}: the table has no rows")
    return cells


def read_rows(path: Path, *, required: Iterable[str] = ()) -> list[Row]:
    """Read a table as rows of text; see :func:`read_cells`."""
    cells = read_cells(path, required=required)
    texts = [cells.text(name) for name in cells.columns]
    rows = [Row(zip(cells.columns, values, strict=True)) for values in zip(*texts, strict=True)]
    for row, number in zip(rows, cells.row.tolist(), strict=True):
        row.where = f"{path}, row {number}"
    return rows


def _numbers(cells: npt.NDArray[Any]) -> Float64Array:
    """Texts (n,) as numbers, NaN for an empty one."""
    filled = cells.copy()
    filled[cells == ""] = "nan"
    return filled.astype(np.float64)


def _arrow_numbers(cells: "pa.ChunkedArray") -> Float64Array:
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.compute as pc  # noqa: PLC0415

    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        cells = pc.utf8_trim_whitespace(cells)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    return np.asarray(pc.cast(cells, pa.float64()).to_numpy(), np.float64)


def _float(text: str) -> float:
    """The number that a text is, NaN for an empty one, infinity where it is none."""
    try:
        return float(text) if text else np.nan
    except ValueError:
        return np.inf


def _read_csv(path: Path) -> Cells:
    with path.open("rb") as binary:
        start = binary.read(2)
    if start in UTF_16 or b"\0" in start:
        raise ColocamError(f"{path}: saved as UTF-16: save it as 'CSV UTF-8'")
    row: list[int] = []
    chunks: list[list[npt.NDArray[Any]]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            separator = next((mark for mark in ",;\t" if mark in header), ",")
            reader = csv.reader(file, strict=True, delimiter=separator)
            names = _checked(path, next(reader, []))
            lines = _lines(path, reader, len(names), decimal_comma=separator != ",")
            while block := list(islice(lines, ROWS_AT_ONCE)):
                row += [index for index, _ in block]
                chunks.append([np.array(cells, TEXT) for cells in zip(*(c for _, c in block), strict=True)])
    except (UnicodeDecodeError, csv.Error) as error:
        raise ColocamError(f"{path}: not a CSV table in UTF-8 ({error}): save it as 'CSV UTF-8'") from error
    empty = np.zeros(0, TEXT)
    columns = [np.concatenate([empty, *(chunk[i] for chunk in chunks)]) for i in range(len(names))]
    return Cells(path, _named(names, columns), np.array(row, np.int64))


def _lines(
    path: Path, reader: Iterable[list[str]], width: int, *, decimal_comma: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the row number and the ``width`` cells of each row that is not empty."""
    for index, line in enumerate(reader, start=2):
        cells = [_own_text(cell.strip()) for cell in line]
        if not any(cells):
            continue
        if any(cells[width:]):
            raise ColocamError(f"{path}, row {index}: more cells than columns: quote values that contain a comma")
        if decimal_comma:
            cells = [DECIMAL_COMMA.sub(r"\1.\2", cell) if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        yield index, cells[:width] + [""] * (width - len(cells))


def read_parquet(path: Path, columns: list[str] | None = None) -> "pa.Table":
    """Read a parquet table, or some of its columns; checksums of its pages are verified where it has them.

    Raises:
        DamagedTableError: it cannot be read.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        _checked(path, pq.read_schema(path).names)  # to read thousands of columns takes long
        return pq.read_table(path, columns=columns, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        what = "damaged" if "checksum" in str(error) else "not a parquet table"
        raise DamagedTableError(path, f"{what} ({first_line(error)})") from error


def _read_parquet(path: Path) -> Cells:
    table = read_parquet(path)
    names = _checked(path, table.column_names)
    return Cells(path, _named(names, table.columns), np.arange(2, 2 + table.num_rows))


def _checked(path: Path, header: Sequence[str]) -> list[str]:
    """Names of the columns; they are few, and no two are equal."""
    if len(header) > MOST_COLUMNS:
        raise ColocamError(f"{path}: {len(header)} columns, more than {MOST_COLUMNS}: remove those that are not needed")
    names = [name.strip().lower() for name in header]
    twice = next((name for name, count in Counter(names).items() if name and count > 1), None)
    if twice is not None:
        raise ColocamError(f"{path}: two columns are called {twice!r}: rename or remove one")
    return names


def _named(names: list[str], columns: Sequence[Column]) -> dict[str, Column]:
    """Columns by name; spreadsheets may add some without a name, which are left out."""
    return {name: column for name, column in zip(names, columns, strict=True) if name}


def _text(value: object) -> str:
    """A value as CSV holds it: a missing one is an empty cell, True is 1."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
