"""Films that could not be labelled: a file for each, and ``failures.parquet`` with all of them."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from colocam.utils.files import atomic_path, utf8, write_json

SCHEMA = pa.schema(
    [("film", pa.string()), ("reason", pa.string()), ("attempts", pa.int64()), ("when", pa.timestamp("s", "UTC"))]
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a film was set aside.

    Attributes:
        film: its name in the catalogue.
        key: key of its part, which tells whether film, model and options are still the same; empty if unknown.
        reason: one line.
        attempts: how often it was tried.
        when: time in UTC, ISO 8601.
    """

    film: str
    key: str
    reason: str
    attempts: int
    when: str


STORED = TypeAdapter(Failure)


class Failures:
    """The failures in a folder of labels, read when it is opened; several commands may write there at once."""

    def __init__(self, labels: Path) -> None:
        self._labels = labels
        self.by_film: dict[str, Failure] = {one.film: one for one in _read(labels / "failures")}

    def add(self, film: str, key: str, reason: str, attempts: int) -> None:
        """Set a film aside."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        failure = Failure(utf8(film), key, utf8(reason), attempts, when)
        write_json(self._path(film), asdict(failure))
        self.by_film[failure.film] = failure

    def remove(self, film: str) -> None:
        """Forget the failure of a film that is labelled now."""
        if self.by_film.pop(utf8(film), None) is not None:
            self._path(film).unlink(missing_ok=True)

    def write_table(self) -> None:
        """Write ``failures.parquet`` from the failures of all commands."""
        failures = sorted(_read(self._labels / "failures"), key=lambda one: one.film)
        columns: list[Iterable[object]] = [
            [one.film for one in failures],
            [one.reason for one in failures],
            [one.attempts for one in failures],
            [datetime.fromisoformat(one.when) for one in failures],
        ]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
        with atomic_path(self._labels / "failures.parquet") as temporary:
            pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), temporary, write_page_checksum=True)

    def _path(self, film: str) -> Path:
        return self._labels / "failures" / f"{hashlib.sha256(os.fsencode(film)).hexdigest()}.json"


def _read(folder: Path) -> list[Failure]:
    """All failures in a folder; a damaged file counts as none, so that its film is tried again."""
    found = []
    for path in folder.glob("*.json"):
        with suppress(OSError, ValueError):  # pydantic's errors are among them
            stored = STORED.validate_json(path.read_bytes(), strict=True)
            datetime.fromisoformat(stored.when)
            found.append(stored)
    return found
