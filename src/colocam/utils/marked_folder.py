"""Write a folder of files as a whole, and replace one only if every file in it is as it was written.

A marker file in the folder holds the name and the digests of each file: ``{"files": {"labels/a.txt": ["9f86…"]}}``.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from colocam.errors import ColocamError
from colocam.utils.files import explain_os_errors, write_json
from colocam.utils.locks import locked
from colocam.utils.temporary import is_temporary, temporary_folder

Digests = dict[str, list[str]]
"""Digests that each file may have, by its name; two while it is being replaced."""


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


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    found = []
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        folders[:] = [name for name in folders if here != folder or not is_temporary(name)]
        links = [name for name in folders if (here / name).is_symlink()]
        names = [*(name for name in files if here != folder or not is_temporary(name)), *links]
        found += [(here / name).relative_to(folder).as_posix() for name in names]
    return sorted(found)
