"""The localisation table: one row per frame, or per object in it, as CSV or parquet."""

import csv
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.types import Localization
from colocam.utils.files import atomic_path, utf8

_SCHEMA = pa.schema(
    [
        ("frame", pa.int64()),
        ("pts", pa.float64()),
        ("class", pa.string()),
        ("probability", pa.float64()),
        ("x1", pa.float64()),
        ("y1", pa.float64()),
        ("x2", pa.float64()),
        ("y2", pa.float64()),
        ("score", pa.float64()),
    ]
)
COLUMNS: tuple[str, ...] = tuple(_SCHEMA.names)
"""Columns of every table; the box is in pixels of the original video and empty where there is none."""

_OPTIONAL = {"track": pa.int64(), "presence": pa.float64(), "margin": pa.float64(), "mask": pa.string()}
OPTIONAL: tuple[str, ...] = tuple(_OPTIONAL)
"""Columns that a table has on demand: object number, presence (0–1), margin, mask (run lengths of COCO)."""

_ROWS_AT_ONCE = 4096


class LocalizationTable:
    """A row per frame, or per object in it, CSV or parquet by the suffix of ``path``; a context manager.

    Numbers in the CSV are written with as many digits as they need to be read back exactly.

    Args:
        path: ends in ``.csv`` or ``.parquet``.
        extra: which of :data:`OPTIONAL` to write after :data:`COLUMNS`.
        pictures: names of the files that are the frames, if they are; the last column is then ``picture``.
    """

    def __init__(self, path: Path, extra: Sequence[str] = (), pictures: Sequence[str] = ()) -> None:
        if path.suffix.lower() not in {".csv", ".parquet"}:
            raise ColocamError(f"cannot write {path}: a table ends in .csv or .parquet")
        self._path = path
        self._extra = tuple(extra)
        self._pictures = pictures
        named = [("picture", pa.string())] if pictures else []
        self._schema = pa.schema([*_SCHEMA, *((name, _OPTIONAL[name]) for name in extra), *named])
        self._rows: list[tuple[Any, ...]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self._path))
            if self._path.suffix.lower() == ".csv":
                file = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
                self._csv = csv.writer(file, lineterminator="\n")
                self._csv.writerow(self._schema.names)
                self._flush = self._flush_csv
            else:
                self._parquet = stack.enter_context(pq.ParquetWriter(temporary, self._schema))
                self._flush = self._flush_parquet
            self._stack = stack.pop_all()
        return self

    def write(self, localization: Localization) -> None:
        """Append the row of one frame or of one object in it."""
        box = localization.box or (None,) * 4
        # A file name that is not UTF-8 can reach the tag; neither format can hold it as it is.
        tag = utf8(localization.tag)
        numbers = [None if value is None else float(value) for value in (localization.probability, *box)]
        row = (int(localization.frame), float(localization.pts), tag, *numbers, float(localization.score))
        named = (self._pictures[localization.frame],) if self._pictures else ()
        self._rows.append((*row, *(_optional(localization, name) for name in self._extra), *named))
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush_csv(self) -> None:
        self._csv.writerows(self._rows)
        self._rows.clear()

    def _flush_parquet(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self._schema.types, strict=True)]
        self._parquet.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with self._stack as stack:
            if error is not None:
                return stack.__exit__(kind, error, trace)
            if self._rows:
                self._flush()
        return None


def _optional(localization: Localization, name: str) -> int | float | str | None:
    value = getattr(localization, name)
    if value is None:
        return None
    return rle.encode(value) if name == "mask" else int(value) if name == "track" else float(value)
