"""Temporary files and folders beside their targets: random names, created exclusively, cleared if their process died.

The process that writes a temporary file holds a lock on it, see :mod:`colocam.utils.locks`. A file without its lock
belongs to a process that was killed, whatever its id, container or host; so does a folder without its file. What was
made on another host or before the last boot is also kept for a day after its last change, since some network file
systems lock on one host only.
"""

import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from colocam.utils.locks import NO_FOLLOW, is_at, try_lock

DAY = 86_400.0
_FILE = re.compile(r"\.colocam-([0-9a-f]{8})-[0-9a-f]{16}\.tmp(\..*)?", re.DOTALL)
_LOCK = re.compile(r"\.colocam-[0-9a-f]{16}\.lock")
_FOLDER = "-folder"
_cleared: set[Path] = set()


@contextmanager
def temporary_file(target: Path) -> Iterator[Path]:
    """Create an empty file beside ``target``, with the same ending; it is removed at the end, unless it was renamed."""
    clear_dead(target.parent)
    path, file = _create(target.parent, target.suffix)
    held = os.name != "nt"  # Windows can neither rename nor remove an open file, and locks none
    if not held:
        os.close(file)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()
        if held:
            os.close(file)


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Create an empty folder in ``folder``; it is removed at the end, unless it was renamed."""
    with temporary_file(folder / "lock") as lock:
        path = lock.with_name(lock.name + _FOLDER)
        try:
            path.mkdir()
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name is a temporary one or a lock."""
    return any(pattern.fullmatch(name.removesuffix(_FOLDER)) for pattern in (_FILE, _LOCK))


def clear_dead(folder: Path, *, again: bool = False) -> None:
    """Remove what killed processes left in ``folder``; done once per process and folder, or ``again``."""
    folder = folder.absolute()
    if folder in _cleared and not again:
        return
    _cleared.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _FILE.fullmatch(entry.name.removesuffix(_FOLDER))
            if match and not entry.is_symlink():
                clear = _clear_folder if entry.is_dir() else _clear
                clear(folder / entry.name, here=match[1] == _boot())


def _clear(path: Path, *, here: bool) -> None:
    try:
        file = os.open(path, os.O_RDWR | NO_FOLLOW)
    except OSError:
        return
    try:
        if (here or time.time() - os.fstat(file).st_mtime > DAY) and try_lock(file) is True:
            shutil.rmtree(path.with_name(path.name + _FOLDER), ignore_errors=True)
            with suppress(OSError):
                path.unlink()
    finally:
        os.close(file)


def _clear_folder(path: Path, *, here: bool) -> None:
    """Remove a folder whose file is gone: a process that was ended while it removed both leaves it."""
    with suppress(OSError):
        if not path.with_name(path.name.removesuffix(_FOLDER)).exists() and (
            here or time.time() - path.stat().st_mtime > DAY
        ):
            shutil.rmtree(path, ignore_errors=True)


def _create(folder: Path, suffix: str) -> tuple[Path, int]:
    while True:
        path = folder / f".colocam-{_boot()}-{secrets.token_hex(8)}.tmp{suffix}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        # Another process may clear the file before it is locked.
        if try_lock(file) is not False and is_at(file, path):
            return path, file
        os.close(file)


@cache
def _boot() -> str:
    """8 hexadecimal digits that differ between hosts and boots; equal in all containers of a host."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        text = socket.gethostname()
    return hashlib.sha256(text.encode()).hexdigest()[:8]
