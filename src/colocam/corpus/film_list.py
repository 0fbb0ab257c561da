"""``films.parquet``: which part belongs to which video; a video is listed once, whatever catalogues named it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from colocam.corpus.part_files import count_part, part_name, part_path
from colocam.utils.files import atomic_path, utf8
from colocam.utils.locks import locked

NAME = "films.parquet"
SCHEMA = pa.schema(
    [
        ("film", pa.string()),
        ("part", pa.string()),
        ("frames", pa.int64()),
        ("rows", pa.int64()),
        ("content", pa.string()),
    ]
)


class Labelled(NamedTuple):
    """What is known of a labelled film.

    Attributes:
        key: of its part.
        frames: number of labelled frames, 0 where it is not known.
        rows: number of rows of its part.
        content: digest of the film, empty where it is not known.
    """

    key: str
    frames: int = 0
    rows: int = 0
    content: str = ""


def write_film_list(labels: Path, done: Mapping[str, Labelled], gone: Iterable[str] = ()) -> dict[str, str]:
    """Bring ``films.parquet`` up to date; the rows of other shards stay.

    A video is listed once, or a detector would be trained and validated with the same frames. It has the name that
    the last command gave it; of several copies in one command, the first name.

    Args:
        labels: folder of the labels.
        done: labelled films by name.
        gone: films that have no part with this model and these options.

    Returns:
        Copies in ``done`` that are not listed → the name of the same video that is.
    """
    with locked(labels, NAME, wait=True):
        old = read_film_list(labels)
        counted = {one.key: (one.frames, one.rows) for one in old.values()}
        names: dict[str, str] = {}  # by key and by content: one of them may not be known
        new: dict[str, Labelled] = {}
        copies: dict[str, str] = {}
        for name, one in sorted(done.items()):
            first = names.setdefault(one.key, name)
            if one.content and first == name:
                first = names.setdefault(one.content, name)
            if first != name:
                copies[name] = first
                continue
            frames, rows = (one.frames, one.rows) if one.frames else counted.get(one.key, (0, 0))
            if not frames:
                frames, rows = count_part(part_path(labels, one.key))
            new[utf8(name)] = Labelled(one.key, frames, rows, one.content)
        left = {utf8(name) for name in (*gone, *copies)}
        kept = {
            name: one
            for name, one in old.items()
            if name not in left and one.key not in names and one.content not in names
        }
        films = kept | new
        if films != old or not (labels / NAME).exists():
            _write(labels / NAME, films)
    return copies


def _write(path: Path, films: Mapping[str, Labelled]) -> None:
    rows = sorted(films.items())
    parts = [part_name(one.key) for _, one in rows]
    numbers = ([one.frames for _, one in rows], [one.rows for _, one in rows])
    columns = ([name for name, _ in rows], parts, *numbers, [one.content for _, one in rows])
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), temporary, write_page_checksum=True)


def read_film_list(labels: Path) -> dict[str, Labelled]:
    """Films by name; none where the table is missing or damaged, since the parts tell the same."""
    try:
        columns = pq.read_table(labels / NAME, schema=SCHEMA, page_checksum_verification=True).to_pydict()
    except (OSError, ValueError, pa.ArrowException):  # also text that is not UTF-8
        return {}
    contents = [content or "" for content in columns.pop("content")]  # lists of version 0.1.0 have none
    if any(None in column for column in columns.values()):
        return {}
    keys = (part.rpartition("/")[2].removesuffix(".parquet") for part in columns["part"])
    rows = map(Labelled, keys, columns["frames"], columns["rows"], contents)
    return dict(zip(columns["film"], rows, strict=True))
