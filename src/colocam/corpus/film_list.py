"""``films.parquet``: which part belongs to which film."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from colocam.corpus.part_files import count_part, part_name, part_path
from colocam.utils.files import atomic_path, utf8
from colocam.utils.locks import locked

NAME = "films.parquet"
SCHEMA = pa.schema([("film", pa.string()), ("part", pa.string()), ("frames", pa.int64()), ("rows", pa.int64())])


class Labelled(NamedTuple):
    """Key of the part of a film, and its numbers of frames and rows; 0 frames where they are not known."""

    key: str
    frames: int = 0
    rows: int = 0


def write_film_list(labels: Path, done: Mapping[str, Labelled], gone: Iterable[str] = ()) -> None:
    """Bring ``films.parquet`` up to date; the rows of other shards stay.

    Args:
        labels: folder of the labels.
        done: labelled films by name.
        gone: films that have no part with this model and these options.
    """
    with locked(labels, NAME, wait=True):
        old = read_film_list(labels)
        films = dict(old)
        for name in gone:
            films.pop(utf8(name), None)
        for name, one in done.items():
            before = old.get(utf8(name))
            if one.frames:
                films[utf8(name)] = one
            elif before is None or before.key != one.key:
                films[utf8(name)] = Labelled(one.key, *count_part(part_path(labels, one.key)))
        if films != old or not (labels / NAME).exists():
            _write(labels / NAME, films)


def _write(path: Path, films: Mapping[str, Labelled]) -> None:
    rows = sorted(films.items())
    parts = [part_name(one.key) for _, one in rows]
    columns = ([name for name, _ in rows], parts, [one.frames for _, one in rows], [one.rows for _, one in rows])
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), temporary)


def read_film_list(labels: Path) -> dict[str, Labelled]:
    """Films by name; none where the table is missing or damaged, since the parts tell the same."""
    try:
        columns = pq.read_table(labels / NAME, schema=SCHEMA).to_pydict()
    except (OSError, ValueError, pa.ArrowException):  # also text that is not UTF-8
        return {}
    if any(None in column for column in columns.values()):
        return {}
    keys = (part.rpartition("/")[2].removesuffix(".parquet") for part in columns["part"])
    rows = map(Labelled, keys, columns["frames"], columns["rows"])
    return dict(zip(columns["film"], rows, strict=True))
