"""Locks between processes, and temporary files beside their targets; also for hosts that share a folder.

The kernel holds the lock (``flock``) and releases it when the process ends, however it ends: no lock is ever stale, and
process ids, which two containers may share, do not matter. NFS forwards these locks to its server. On file systems
without locks a warning asks to run one command at a time.

Temporary files have random names and are created exclusively. The process that writes one holds a lock on it: a file
without its lock belongs to a process that was killed, and so does a folder without its file. What was made on another
host or before the last boot is also kept for a day after its last change, since some network file systems lock on one
host only.
"""

import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from colocam.errors import ColocamError
from colocam.utils.progress import say

if TYPE_CHECKING:
    import fcntl
else:
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        fcntl = None

DAY = 86_400.0
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # not on Windows
_FILE = re.compile(r"\.colocam-([0-9a-f]{8})-[0-9a-f]{16}\.tmp(\..*)?", re.DOTALL)
_LOCK = re.compile(r"\.colocam-[0-9a-f]{16}\.lock")
_FOLDER = "-folder"
_cleared: set[Path] = set()


def try_lock(file: int) -> bool | None:
    """Lock an open file without waiting: False if another holds the lock, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


def is_at(file: int, path: Path) -> bool:
    """Whether ``path`` is still the name of an open file."""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except OSError:
        return False


@contextmanager
def locked(folder: Path, name: str = "", *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of ``folder``, or of ``name`` in it; the lock file is removed at the end.

    Args:
        folder: an existing folder.
        name: what is locked in it; empty for the folder as a whole.
        wait: whether to wait for another command that holds the lock.

    Raises:
        ColocamError: another command holds the lock.
    """
    path = folder / f".colocam-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.lock"
    file = _acquire(path, folder / name, wait=wait)
    try:
        os.truncate(file, 0)
        os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        if fcntl is None:
            os.close(file)  # Windows deletes no open file
        with suppress(OSError):
            path.unlink()  # while it is locked: who waits for it sees that the name is gone, and takes the next file
        if fcntl is not None:
            os.close(file)


def _acquire(path: Path, what: Path, *, wait: bool) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
        with ExitStack() as stack:
            stack.callback(os.close, file)
            if (free := try_lock(file)) is False:
                holder = os.read(file, 100).decode("utf-8", "replace") or "another command"
                if not wait:
                    raise ColocamError(f"{what} is in use by {holder}: wait until it ends, or choose another folder")
                say(f"{what} is being written by {holder}: waiting until it ends")
                fcntl.flock(file, fcntl.LOCK_EX)
            elif free is None:
                _warn_of_no_locks(path.parent)
            if is_at(file, path):
                stack.pop_all()
                return file


@cache
def _warn_of_no_locks(folder: Path) -> None:
    where = "this system" if fcntl is None else f"the file system of {folder}"
    say(f"warning: {where} has no locks that colocam can use: run only one command in {folder} at a time")


@contextmanager
def temporary_file(target: Path) -> Iterator[Path]:
    """Create an empty file beside ``target``, with the same ending; it is removed at the end, unless it was renamed."""
    clear_dead(target.parent)
    path, file = _create(target.parent, target.suffix)
    if fcntl is None:
        os.close(file)  # Windows renames no open file
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()
        if fcntl is not None:
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
            path, name = folder / entry.name, entry.name.removesuffix(_FOLDER)
            if entry.is_symlink():
                continue
            if _LOCK.fullmatch(entry.name):
                _clear(path, here=again and _is_of_this_host(path))
            elif (match := _FILE.fullmatch(name)) and entry.name == name:
                _clear(path, here=match[1] == _boot())
            elif match and not (folder / name).exists() and (match[1] == _boot() or _is_old(entry.stat())):
                # A process that was ended while it removed both leaves a folder without its file.
                shutil.rmtree(path, ignore_errors=True)


def _clear(path: Path, *, here: bool) -> None:
    """Remove a file that no process holds, and its folder."""
    try:
        file = os.open(path, os.O_RDWR | _NO_LINK)
    except OSError:
        return
    try:
        if (here or _is_old(os.fstat(file))) and try_lock(file) is True:
            shutil.rmtree(path.with_name(path.name + _FOLDER), ignore_errors=True)
            with suppress(OSError):
                path.unlink()
    finally:
        os.close(file)


def _is_old(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > DAY


def _is_of_this_host(lock: Path) -> bool:
    with suppress(OSError):
        return lock.read_text(encoding="utf-8", errors="replace").endswith(f" on {socket.gethostname()}")
    return False


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
