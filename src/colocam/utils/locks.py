"""Locks between processes, also those of several containers or hosts that share a folder.

The kernel holds the lock (``flock``) and releases it when the process ends, however it ends: no lock is ever stale, and
process ids, which two containers may share, do not matter. NFS forwards these locks to its server. Windows has no
``flock``: there, as on file systems without locks, a warning asks to run one command at a time.
"""

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from colocam.errors import ColocamError
from colocam.utils.progress import say

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""Flag that refuses to open a link; 0 on Windows, which has none."""


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
        with suppress(OSError):
            path.unlink()  # while it is locked: who waits for it sees that the name is gone, and takes the next file
        os.close(file)


def _acquire(path: Path, what: Path, *, wait: bool) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        try:
            if (free := try_lock(file)) is False:
                _meet(file, what, wait=wait)
            elif free is None:
                say(f"warning: {path.parent} is on a file system without locks: run only one command there at a time")
            if is_at(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _meet(file: int, what: Path, *, wait: bool) -> None:
    """Wait for the lock that another command holds, or raise."""
    holder = os.read(file, 100).decode("utf-8", "replace") or "another command"
    if not wait:
        raise ColocamError(f"{what} is in use by {holder}: wait until it ends, or choose another folder")
    say(f"{what} is being written by {holder}: waiting until it ends")
    fcntl.flock(file, fcntl.LOCK_EX)
