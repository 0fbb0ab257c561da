"""Digests of whole files, remembered until a file changes.

Every byte counts: a file is read whole once. Its digest is then remembered with what the file system states of the file
(inode, size, time of the last change of content and of state). The last, ``ctime``, is set by the kernel at
every change and cannot be set back, so that a file with the same statement has the same bytes.
"""

import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

MEMORY = ".colocam-digests.jsonl"
"""Name of a file of remembered digests."""
SETTLED = 2.0
"""Seconds since the last change after which a digest is remembered: two changes may fall into one tick of the clock."""
SMALL = 2**20
"""Files with fewer bytes are read each time, which is as fast as to remember them."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, which results and exports are stored with."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text; what is no character, as in odd file names, is escaped."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


class FileDigests:
    """Digests of files and of folders of images; a memory of them on disk is optional.

    A digest is BLAKE2b with 256 bits, as ``b2sum -l 256 FILE`` prints it. That of several files is the digest of
    the lines ``<digest>  <name>``, one for each file.

    Args:
        memory: file to remember digests in, one line each; None: they are remembered in this object alone.
        others: memories of other commands, which are only read.
    """

    def __init__(self, memory: Path | None = None, others: Iterable[Path] = ()) -> None:
        self._memory = memory
        self._known: dict[str, str] = {}
        for path in (*others, *([] if memory is None else [memory])):
            self._known |= _read(path)
        self._unsaved: dict[str, str] = {}

    def of_file(self, path: Path) -> str:
        """Digest of the content of a file."""
        return self._remembered("file", [path], lambda: _of_bytes(path))

    def of_files(self, paths: Sequence[Path]) -> str:
        """Digest of the names and contents of files, in order."""

        def read() -> str:
            lines = (os.fsencode(f"{_of_bytes(path)}  {path.name}\n") for path in paths)
            return hashlib.blake2b(b"".join(lines), digest_size=32).hexdigest()

        return self._remembered("files", paths, read)

    def quick(self, path: Path) -> str | None:
        """Digest of the content of a file that is remembered or small; None where all of a large file must be read.

        Made for 100,000 files: a small one takes 20 µs.

        Raises:
            IsADirectoryError: it is a folder.
        """
        status = os.stat(path)  # noqa: PTH116 - Path.stat and Path.open take three times as long
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(path)
        _require_regular(status)
        if status.st_size >= SMALL:
            return self._known.get(_stated("file", [path])[0])
        file = os.open(path, os.O_RDONLY)
        try:
            return hashlib.blake2b(os.read(file, SMALL), digest_size=32).hexdigest()
        finally:
            os.close(file)

    def quick_of_files(self, paths: Sequence[Path]) -> str | None:
        """:meth:`quick` for the names and contents of files, in order."""
        stated, size, _ = _stated("files", paths)
        return self._known.get(stated) or (self.of_files(paths) if size < SMALL else None)

    def save(self) -> None:
        """Append what is new to the memory, if its folder exists; a memory that cannot be written costs time alone."""
        if self._memory is None or not self._unsaved:
            return
        lines = [json.dumps([stated, digest]) + "\n" for stated, digest in self._unsaved.items()]
        with suppress(OSError), self._memory.open("a", encoding="ascii") as file:
            file.write("".join(lines))
            self._unsaved.clear()

    def _remembered(self, kind: str, paths: Sequence[Path], read: Callable[[], str]) -> str:
        started = time.time()
        stated, size, changed = _stated(kind, paths)
        if stated in self._known:
            return self._known[stated]
        digest = read()
        settled = started - changed > SETTLED and _stated(kind, paths)[0] == stated
        if settled and size >= SMALL:
            self._known[stated] = self._unsaved[stated] = digest
        return digest


def _of_bytes(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _stated(kind: str, paths: Sequence[Path]) -> tuple[str, int, float]:
    """What the file system states of files, as a digest; their size in bytes; seconds of the latest change."""
    status = [path.stat() for path in paths]
    for entry in status:
        _require_regular(entry)
    facts = [
        # Without the device: hosts number those of a network file system differently.
        [os.fsencode(path.name).hex(), part.st_ino, part.st_size, part.st_mtime_ns, part.st_ctime_ns]
        for path, part in zip(paths, status, strict=True)
    ]
    stated = hashlib.blake2b(json.dumps([kind, facts]).encode(), digest_size=32).hexdigest()
    return stated, sum(part.st_size for part in status), max((part.st_ctime for part in status), default=0.0)


def _require_regular(status: os.stat_result) -> None:
    """Refuse pipes and devices: reading them may never end."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _read(memory: Path) -> dict[str, str]:
    """Digests by statement; lines that are damaged, as after a full disk, are left out."""
    known: dict[str, str] = {}
    with suppress(OSError, ValueError), memory.open(encoding="ascii") as file:
        for line in file:
            with suppress(ValueError, TypeError, RecursionError):
                stated, digest = json.loads(line)
                if _DIGEST.fullmatch(stated) and _DIGEST.fullmatch(digest):
                    known[stated] = digest
    return known
