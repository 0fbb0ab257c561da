"""Ids of films, by their content: a film that was moved keeps its corrections, films that differ never share them."""

import hashlib
import threading
from pathlib import Path

from colocam.serve.event_store import EventStore
from colocam.utils.digests import FileDigests
from colocam.video.images import images_of

BLOCK, BLOCKS = 1 << 18, 16
"""The first version knew a file by its size and 16 blocks of 256 KiB, evenly spread."""


class FilmIds:
    """Digests of films, remembered in a file, and the ids that belong to them; may be called from any thread.

    Args:
        store: knows which id belongs to which digest.
        memory: file that digests are remembered in, so that a film is read whole once.
    """

    def __init__(self, store: EventStore, memory: Path) -> None:
        self._store = store
        self._digests = FileDigests(memory)
        self._lock = threading.Lock()

    def digest(self, path: Path) -> str:
        """64 hexadecimal digits, of all bytes of a film, or of the names and contents of a folder of images."""
        with self._lock:
            found = self._digests.of_files(images_of(path)) if path.is_dir() else self._digests.of_file(path)
            self._digests.save()
        return found

    def of(self, path: Path, digest: str) -> str:
        """24 hexadecimal digits, for ever the same for this content.

        A film that the first version gave an id to keeps it, unless another film with that id is still at its path.
        """
        with self._lock:
            if (known := self._store.film_of(digest)) is not None:
                return known
            film = digest[:24]
            if unclaimed := self._store.unclaimed():
                old = sampled_id(path)
                owner = unclaimed.get(old)
                if owner is not None and (not owner or Path(owner) == path.absolute() or not Path(owner).exists()):
                    film = old
            self._store.claim(digest, film)
            return film


def sampled_id(path: Path) -> str:
    """The id that the first version gave to a film; films that differ between its blocks share it."""
    digest = hashlib.sha256()
    for file in images_of(path) if path.is_dir() else (path,):
        digest.update(_blocks(file))
    return digest.hexdigest()[:24]


def _blocks(path: Path) -> bytes:
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
