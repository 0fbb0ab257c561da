"""Write files atomically: write to a temporary file beside the target, flush, rename."""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

_BREAKS = {"Cc", "Zl", "Zp"}  # control characters and separators of lines


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; on success it becomes ``target``, on failure it is removed.

    The temporary name keeps the target's ending, since many writers choose the format by it.
    """
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.tmp{target.suffix}")
    try:
        with explain_os_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def atomic_folder(target: Path, marker: str) -> Iterator[Path]:
    """Yield a temporary folder beside ``target``; on success it becomes ``target``, on failure it is removed.

    An empty ``target`` is replaced, and one that this function made and to which no file was added.

    Args:
        target: the folder to make.
        marker: name of a file in it that marks it as made by this function and holds the number of files.

    Raises:
        ColocamError: ``target`` holds other files.
    """
    name = target.absolute().name
    beside = target.absolute().parent
    temporary, old = beside / f".{name}.{os.getpid()}.tmp", beside / f".{name}.{os.getpid()}.old"
    _refuse_foreign(target, marker)
    try:
        with explain_os_errors(target):
            temporary.mkdir(parents=True)
            yield temporary
            write_json(temporary / marker, {"files": _count_files(temporary) + 1})
            if target.exists():
                target.rename(old)
            try:
                temporary.rename(target)
            except OSError:
                with suppress(OSError):
                    old.rename(target)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _refuse_foreign(target: Path, marker: str) -> None:
    with explain_os_errors(target):
        if not target.exists() or (target.is_dir() and not any(target.iterdir())):
            return
        if not target.is_dir():
            raise ColocamError(
                f"cannot write {target}: there is a file where a folder is needed: choose another folder"
            )
        try:
            expected = json.loads((target / marker).read_text(encoding="utf-8"))["files"]
        except (OSError, ValueError, KeyError, TypeError):
            expected = None
        if expected != _count_files(target):
            raise ColocamError(f"{target} holds other files: choose another folder, or empty it")


def _count_files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


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
            errno.EISDIR: "there is a folder where a file is needed: choose another output folder",
        }.get(
            errno.ENOSPC if "requested and" in str(error) else error.errno or 0
        )  # numpy reports a short write by this text alone
        if remedy is None:
            raise
        raise ColocamError(f"cannot write {path}: {remedy}") from error


def write_text(target: Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Write ``value`` as indented JSON, atomically; NaN and infinity are refused, since they are not JSON."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_array(target: Path, array: npt.NDArray[Any]) -> None:
    """Write an array as an ``.npy`` file, atomically."""
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        # np.save bypasses Python's file object, so that a full disk can go unnoticed
        array = np.ascontiguousarray(array)
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


def plain(text: str) -> str:
    """One line of printable characters that UTF-8 and XML can hold."""
    shown = (" " if category(c) in _BREAKS or c in "\ufffe\uffff" else c for c in utf8(text))
    return " ".join("".join(shown).split())


def utf8(text: str) -> str:
    """``text`` with every character that UTF-8 cannot hold, as in some file names, replaced by its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
