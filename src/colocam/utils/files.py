"""Write files atomically: write to a temporary file beside the target, flush, rename."""

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from tokenize import TokenError
from typing import Any
from unicodedata import category

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.utils.temporary import is_temporary, temporary_file

MARKED = 2**16
_BREAKS = {"Cc", "Zl", "Zp"}  # control characters and separators of lines
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji need them; they turn nothing


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success it becomes ``target``, on failure it is removed.

    The temporary name keeps the target's ending, since many writers choose the format by it. A link is followed. A
    device or a pipe is written to and stays what it is.
    """
    with explain_os_errors(target):
        if _is_stream(target):
            with temporary_file(Path(gettempdir()) / target.name) as temporary:
                yield temporary
                # Appending: the standard output may be a file that others write to as well.
                with temporary.open("rb") as made, os.fdopen(os.open(target, os.O_WRONLY | os.O_APPEND), "wb") as file:
                    shutil.copyfileobj(made, file)
            return
        place = Path(os.path.realpath(target)) if target.is_symlink() else target
        place.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(place) as temporary:
            yield temporary
            publish(temporary, place)


def publish(file: Path, target: Path) -> None:
    """Give a whole file its final name; its bytes are on the disk before."""
    with file.open("rb") as written:
        os.fsync(written.fileno())
    file.replace(target)


def _is_stream(target: Path) -> bool:
    """Whether a path leads to a device or a pipe, or to a file that this process has open, as /dev/stdout does."""
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    while stat.S_ISREG(mode) and target.is_symlink():
        if target.absolute().parts[1] in {"dev", "proc"}:
            return True
        target = target.parent / target.readlink()
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def stored(path: Path) -> Path:
    """``path``; refused if it is a pipe or a device, since to read one as a whole may never end.

    For files that a user names, before they are opened. What does not exist passes: its reader says so.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return path
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return path
    raise ColocamError(f"cannot read {path}: it is a pipe or a device: save it as a file, and name that")


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder or a missing permission into an error of one line with a remedy."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "the disk is full: free some space and run the same command again",
            errno.EDQUOT: "your disk quota is used up: free some space and run the same command again",
            errno.EROFS: "the file system is read-only: choose another output folder",
            errno.EACCES: "no permission to write there: choose another output folder",
            errno.EPERM: "no permission to write there: choose another output folder",
            errno.ENOTDIR: "there is a file where a folder is needed: choose another output folder",
            errno.EEXIST: "there is a file where a folder is needed: choose another output folder",
            errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
            errno.ELOOP: "the link leads to itself: choose another output",
            errno.EISDIR: "there is a folder where a file is needed: choose another output folder",
        }.get(
            errno.ENOSPC if "requested and" in str(error) else error.errno or 0
        )  # numpy reports a short write by this text alone
        if remedy is None:
            raise
        path = path.parent.parent / path.name if is_temporary(path.parent.name) else path
        raise ColocamError(f"cannot write {path}: {remedy}") from error


def refuse_replacing(target: Path, mark: bytes, what: str) -> None:
    """Refuse an output file that exists and was not written by colocam.

    Files of one kind are known by ``mark``, bytes in their first or last :data:`MARKED` bytes. An empty file may be
    replaced; a device or a pipe is never replaced, see :func:`atomic_path`.

    Args:
        target: the output file that the user named.
        mark: what each file of this kind holds.
        what: the kind, for the error.
    """
    if not target.is_file() or _is_stream(target):
        return
    with target.open("rb") as file:
        first, size = file.read(MARKED), target.stat().st_size
        file.seek(max(0, size - MARKED))
        ours = mark in first or mark in file.read(MARKED)
    if size and not ours:
        raise ColocamError(f"{target} exists and is no {what}: choose another file, or move it away")


def write_text(target: Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write ``value`` as indented JSON, atomically; NaN and infinity are refused, since they are not JSON."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def stream_json(target: Path, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write ``value`` as JSON, atomically; an iterator in it becomes a list, with a line for each item.

    Iterators may be ``value`` itself, an item of an iterator, or a value of a dictionary that is one of these. Memory
    holds one item at a time.
    """
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(_json_parts(value))
        file.write("\n")


def _json_parts(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, Iterator):
        yield "["
        for index, item in enumerate(value):
            yield ",\n" if index else "\n"
            yield from _json_parts(item)
        yield "\n]"
    elif isinstance(value, dict) and any(isinstance(one, Iterator) for one in value.values()):
        for index, (key, item) in enumerate(value.items()):
            yield f"{', ' if index else '{'}{json.dumps(key, ensure_ascii=False)}: "
            yield from _json_parts(item)
        yield "}"
    else:
        yield json.dumps(value, ensure_ascii=False, allow_nan=False)


def write_array(target: Path, array: npt.NDArray[Any]) -> None:
    """Write an array as an ``.npy`` file, atomically."""
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        # np.save bypasses Python's file object, so that a full disk can go unnoticed
        array = np.ascontiguousarray(array)
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


DAMAGED_ARRAY = (OSError, ValueError, EOFError, SyntaxError, ArithmeticError, TokenError)
"""What NumPy raises for an ``.npy`` file that is missing or damaged; it parses the header as Python."""


def read_array(path: Path) -> npt.NDArray[Any] | None:
    """The array of an ``.npy`` file, mapped into memory; None if there is none or it is damaged."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGED_ARRAY:
        return None
    return array if isinstance(array, np.ndarray) else None


def plain(text: str) -> str:
    """One line of printable characters that UTF-8 and XML can hold, none of which turns or hides text."""
    seen = (c for c in utf8(text) if category(c) != "Cf" or c in _JOINERS)
    shown = (" " if category(c) in _BREAKS or c in "\ufffe\uffff" else c for c in seen)
    return " ".join("".join(shown).split())


def utf8(text: str) -> str:
    """``text`` with every character that UTF-8 cannot hold, as in some file names, replaced by its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
