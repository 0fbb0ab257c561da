"""Ids of films: digests of their content, so that a film that was moved keeps its corrections."""

import hashlib
from pathlib import Path

from colocam.video.image_files import images_of

BLOCK, BLOCKS = 1 << 18, 16
"""A file is known by its size and 16 blocks of 256 KiB, evenly spread; reading all of a long film takes minutes."""


def film_id(path: Path) -> str:
    """24 hexadecimal digits that depend on the content of a film or of a folder of images alone."""
    digest = hashlib.sha256()
    for file in images_of(path) if path.is_dir() else (path,):
        digest.update(_content(file))
    return digest.hexdigest()[:24]


def _content(path: Path) -> bytes:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        if size <= BLOCK * BLOCKS:
            digest.update(file.read())
        else:
            for block in range(BLOCKS):
                file.seek(block * (size - BLOCK) // (BLOCKS - 1))
                digest.update(file.read(BLOCK))
    return digest.digest()
