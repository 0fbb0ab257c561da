"""Parts: one localisation table per film, named by what it was made from, and either whole or not there."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

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
    """Number of frames and of rows of a part."""
    frames = pq.read_table(path, columns=["frame"]).column("frame").to_numpy()
    return len(np.unique(frames)), len(frames)


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
