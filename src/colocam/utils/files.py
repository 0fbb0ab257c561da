"""Read and write files: text, JSON and arrays, single files and whole folders, always atomically.

A file is written beside its target, flushed and renamed. A folder is replaced only if every file in it is as it was
written: a marker in it holds the digests of each, ``{"files": {"labels/a.txt": ["9f86…"]}}``.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from tokenize import TokenError
from typing import Any, NoReturn
from unicodedata import category

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.utils.digests import file_digest
from colocam.utils.locks import is_temporary, locked, temporary_file, temporary_folder

MARKED = 2**16
_BREAKS = {"Cc", "Zl", "Zp"}  # control characters and separators of lines
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji need them; they turn nothing
DAMAGED_ARRAY = (OSError, ValueError, EOFError, SyntaxError, ArithmeticError, TokenError)
"""What NumPy raises for an ``.npy`` file that is missing or damaged; it parses the header as Python."""
Digests = dict[str, list[str]]
"""Digests that each file may have, by its name; two while it is being replaced."""


def parse_json(text: str | bytes, each: Callable[[dict[str, Any]], Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON; raise a ValueError where it is none, also for NaN, infinity and text that is nested too deeply.

    ``each`` gets every object as soon as it is read, and gives what stands for it.
    """
    try:
        return json.loads(text, parse_constant=_refuse, object_hook=each)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


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
    with file.open("r+b" if os.name == "nt" else "rb") as written:  # Windows syncs only what may be written
        os.fsync(written.fileno())
    file.replace(target)


def link(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it where the file system has no hard links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        with atomic_path(target) as temporary:
            shutil.copyfile(source, temporary)


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


FULL = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again",
    errno.EDQUOT: "your disk quota is used up: free some space and run the same command again",
    errno.EFBIG: "files may not become so large here: raise the limit (ulimit -f), or choose another output folder",
    errno.EROFS: "the file system is read-only: choose another output folder",
}
"""Errors that only writing meets, and what to do; no video is to blame for them."""


def os_error_text(error: OSError) -> str:
    """One line for an error of the system that nothing closer to it explained."""
    name = "" if error.filename is None else os.fsdecode(error.filename)
    if (remedy := FULL.get(error.errno or 0)) is not None:
        return f"cannot write {name or 'a file'}: {remedy}"
    if name and error.strerror:
        return f"{name}: {error.strerror}"
    return error.strerror or str(error)


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder or a missing permission into an error of one line with a remedy."""
    try:
        yield
    except OSError as error:
        remedy = {
            **FULL,
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


def try_writing(folder: Path) -> None:
    """Create a folder if there is none, and refuse one that cannot be written to: before hours of work, not after."""
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_file(folder / "test"):
            pass


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
        raise ColocamError(f"{target} exists and is not a {what}: choose another file, or move it away")


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


@contextmanager
def atomic_folder(target: Path, marker: str) -> Iterator[Path]:
    """Yield a temporary folder; on success its files become those of ``target``, on failure it is removed.

    A new folder appears only when it is complete. The files of an existing one are replaced one by one, so that it
    may be the current folder, a mount point or a link.

    Args:
        target: the folder to make; it may exist if it is empty, or if this function made all of its files.
        marker: name of a file in it that holds the names and digests of the others.

    Raises:
        ColocamError: ``target`` holds other files, or another command writes to it.
    """
    with explain_os_errors(target):
        place = Path(os.path.realpath(target))
        if place.exists() and not place.is_dir():
            raise ColocamError(
                f"cannot write {target}: there is a file where a folder is needed: choose another folder"
            )
        _refuse_foreign(target, marker)
        home = place if place.is_dir() else place.parent
        home.mkdir(parents=True, exist_ok=True)
        with locked(home, "" if home == place else place.name), temporary_folder(home) as temporary:
            yield temporary
            made = {name: [file_digest(temporary / name)] for name in _files(temporary)}
            write_json(temporary / marker, {"files": made})
            if home == place:
                _refuse_foreign(target, marker)
                _replace_files(temporary, place, marker, made)
            else:
                temporary.rename(place)


def _refuse_foreign(folder: Path, marker: str) -> None:
    known = _read(folder / marker)
    for name in _files(folder):
        path = folder / name
        if name == marker and known:
            continue
        if name not in known or path.is_symlink() or not path.is_file():
            raise ColocamError(f"{folder} holds other files: choose another folder, or empty it")
        if file_digest(path) not in known[name]:
            raise ColocamError(f"{path} was changed after it was exported: choose another folder, or move it away")


def _replace_files(new: Path, folder: Path, marker: str, made: Digests) -> None:
    """Replace the files of an earlier export; at every moment the marker lists all files that are there."""
    old = _read(folder / marker)
    write_json(folder / marker, {"files": {name: made.get(name, []) + old.get(name, []) for name in made | old}})
    for name in old:
        if name not in made:
            (folder / name).unlink(missing_ok=True)
            for parent in (folder / name).parents[: name.count("/")]:
                with suppress(OSError):  # not empty
                    parent.rmdir()
    for name in made:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).replace(folder / name)
    (new / marker).replace(folder / marker)


def _read(marker: Path) -> Digests:
    """What a marker holds; nothing where it is damaged or leads out of its folder."""
    try:
        files = json.loads(marker.read_text(encoding="utf-8"))["files"]
        return {
            str(name): [str(one) for one in digests]
            for name, digests in files.items()
            if not Path(name).is_absolute() and ".." not in Path(name).parts
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _files(folder: Path) -> list[str]:
    """Everything below a folder that is no folder itself, by its name; without temporary files and locks."""
    paths = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        folders[:] = [name for name in folders if here != folder or not is_temporary(name)]
        links = [name for name in folders if (here / name).is_symlink()]
        names = [*(name for name in files if here != folder or not is_temporary(name)), *links]
        paths += [(here / name).relative_to(folder).as_posix() for name in names]
    return sorted(paths)
