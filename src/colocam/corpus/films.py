"""The films of a corpus, and the shard of them that one machine labels."""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ArgumentError, ColocamError
from colocam.inference.jobs import videos_below
from colocam.utils.files import stored
from colocam.utils.tables import read_cells


class Film(NamedTuple):
    """A film of a catalogue.

    Attributes:
        name: relative to the catalogue, with slashes; unique in it.
        path: a video file, or a folder of images.
        tag: class that the film shows; None: that of the command, or the one that the classifier finds.
    """

    name: str
    path: Path
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` of ``count``, from 1."""

    index: int = 1
    count: int = 1

    def has(self, film: Film) -> bool:
        """Whether a film belongs to this shard; a hash of its name decides, which all machines compute alike."""
        digest = hashlib.blake2b(os.fsencode(film.name), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.index - 1

    def __str__(self) -> str:
        return f"{self.index}-of-{self.count}"


def parse_shard(text: str) -> Shard:
    """Parse ``I/N``, 1 ≤ I ≤ N."""
    parts = text.split("/")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        shard = Shard(*map(int, parts))
        if 1 <= shard.index <= shard.count:
            return shard
    raise ArgumentError("shard", f"must be I/N with 1 ≤ I ≤ N, e.g. 3/8, got {text}")


def read_films(catalogue: Path, out: Path) -> list[Film]:
    """The films of a catalogue in order.

    Args:
        catalogue: a folder, whose films in and below it are taken as ``colocam localize`` takes them; or a CSV or
            parquet table with the column ``path``, relative to its folder, and optionally ``tag``.
        out: folder of the labels, which is skipped if it lies in ``catalogue``.
    """
    if catalogue.is_dir():
        # Text is cut, since there may be many films, and Path.relative_to takes ten times as long.
        above = len(str(catalogue / "x")) - 1
        films = [Film(str(path)[above:].replace(os.sep, "/"), path) for path in videos_below(catalogue, out)]
    elif not stored(catalogue).exists():
        raise ColocamError(f"{catalogue}: there is no such folder or table")
    elif catalogue.suffix.lower() in {".csv", ".parquet"}:
        films = _listed(catalogue)
    else:
        raise ColocamError(f"{catalogue}: give a folder of films, or a table whose name ends in .csv or .parquet")
    if not films:
        raise ColocamError(f"{catalogue}: no film in it")
    return films


def _listed(table: Path) -> list[Film]:
    cells = read_cells(table, required=("path",))
    names, tags = cells.text("path"), cells.text("tag")
    twice = Counter(names)
    for row, name in enumerate(names):
        if not name:
            cells.fail(row, "path is empty: give the film, relative to the table")
        if "\0" in name:
            cells.fail(row, "path has a NUL character, which no file name can hold")
        if twice[name] > 1:
            cells.fail(row, f"path {name!r} is listed twice")
    return [Film(name, table.parent / name, tag or None) for name, tag in zip(names, tags, strict=True)]


def of_shard(films: Sequence[Film], shard: Shard) -> list[Film]:
    """The films of a shard, in order."""
    return [film for film in films if shard.has(film)]
