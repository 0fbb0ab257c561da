"""Parts: one localisation table per film, named by what it was made from, and either whole or not there."""

import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from colocam.errors import ColocamError
from colocam.utils.files import parse_json
from colocam.utils.tables import DamagedTableError, read_parquet
from colocam.video.description import SourceVideo, parse_source, source_card

FILM = "colocam.film"
"""Name under which the metadata of a part describe its film."""
MAGIC = b"PAR1"
LEAST = 12
"""Bytes of the smallest parquet file: the magic at both ends, and the length of the footer."""


def part_name(key: str) -> str:
    """Path of the part with a key in the folder of the labels."""
    return f"parts/{key[:2]}/{key}.parquet"


def part_path(labels: Path, key: str) -> Path:
    """Path of the part with a key."""
    return labels / part_name(key)


def is_whole(path: Path | str) -> bool:
    """Whether a file ends as a parquet file does; its last eight bytes are read, since there are many parts.

    A file that was truncated, emptied or filled with zeros does not.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        size = os.fstat(file).st_size
        end = os.pread(file, 8, max(0, size - 8)) if size >= LEAST else b""
    except OSError:
        return False
    finally:
        os.close(file)
    return len(end) == 8 and end[4:] == MAGIC and 0 < struct.unpack("<I", end[:4])[0] <= size - LEAST


def count_part(path: Path) -> tuple[int, int]:
    """Number of frames and of rows of a part.

    Raises:
        ColocamError: the part is damaged, or another program changed it.
    """
    try:
        frames = read_parquet(path, ["frame"]).column("frame").cast(pa.int64()).to_numpy()
    except (DamagedTableError, ValueError, KeyError, pa.ArrowException) as error:
        raise ColocamError(f"cannot read {path}: delete it and run 'colocam label' again") from error
    return len(np.unique(frames)), len(frames)


def film_metadata(film: SourceVideo) -> dict[str, str]:
    """What a part says of its film: all but its path, so that equal films have equal parts."""
    return {FILM: json.dumps({**source_card(film), "path": ""})}


def read_film(path: Path) -> SourceVideo:
    """The film of a part, without its path."""
    try:
        stored = (pq.read_metadata(path).metadata or {})[FILM.encode()]
        return parse_source(parse_json(stored.decode("utf-8")))
    except KeyError as error:
        raise ColocamError(f"{path} does not describe its film: run 'colocam label' again") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ColocamError(f"cannot read {path}: run 'colocam label' again, which makes damaged parts anew") from error


@contextmanager
def durable(target: Path) -> Iterator[None]:
    """Make a file that is written and renamed inside survive a power failure: sync its folder and the one above."""
    target.parent.mkdir(parents=True, exist_ok=True)
    yield
    for folder in (target.parent, target.parent.parent):
        _sync(folder)


def _sync(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot sync a folder
            os.fsync(file)
    finally:
        os.close(file)
