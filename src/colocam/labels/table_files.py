"""Localization tables as files: those of a folder, names that tell them apart, and which result files are ours."""

import hashlib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from colocam.errors import ColocamError
from colocam.utils.digests import file_digest
from colocam.utils.files import plain, publish, utf8
from colocam.video.description import SourceVideo, read_path, read_results, source_path, write_source

ENDINGS = (".csv", ".parquet")
LONGEST = 120
"""Bytes of the name of a video in an export at most; formats add the index of a frame and an ending."""


def tables_of(sources: Iterable[str | Path]) -> list[Path]:
    """The localization tables that are named, or that are in folders of ``colocam localize`` and their subfolders.

    Tables of a folder have a ``.video.json`` beside them, which other CSV files have not.
    """
    return [table for source in map(Path, sources) for table in (_inside(source) if source.is_dir() else [source])]


def _inside(path: Path) -> list[Path]:
    tables = sorted(
        table
        for table in path.rglob("*")
        if table.suffix.lower() in ENDINGS
        and not any(part.startswith(".") for part in table.relative_to(path).parent.parts)
        and source_path(table).is_file()
    )
    if not tables:
        raise ColocamError(f"{path}: no localization table with its .video.json: give the folder of 'colocam localize'")
    return tables


def file_name(video: str) -> str:
    """Name of a video as a part of file names, at most :data:`LONGEST` bytes: ``cat/01`` becomes ``cat_01``."""
    text = re.sub(r'[/\\:*?"<>|]', "_", plain(video)).strip(". ") or "video"
    encoded = text.encode()
    if len(encoded) <= LONGEST:
        return text
    digest = hashlib.blake2b(video.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{encoded[: LONGEST - 17].decode('utf-8', 'ignore')}-{digest}"


def unused(names: Iterable[str], taken: set[str]) -> str:
    """The first of ``names`` whose file name is not in ``taken``, else the last one with a number; it is taken then.

    All names of videos that must differ are made by this function.
    """
    last = ""
    for last in names:
        if file_name(last).casefold() not in taken:
            break
    else:
        last = next(one for number in count(2) if file_name(one := f"{last}-{number}").casefold() not in taken)
    taken.add(file_name(last).casefold())
    return last


def names_of(tables: Sequence[Path]) -> list[str]:
    """A name for each table that is unique and may be part of a file name.

    It is the name of the file. Of several with one name, each has so many of its folders before it that they differ:
    ``cat/01.csv`` and ``dog/01.csv`` become ``cat_01`` and ``dog_01``.
    """
    parts = [(*(_part(name) for name in table.absolute().parent.parts), _part(table.stem)) for table in tables]
    depths = [1] * len(tables)
    while True:
        names = ["_".join(part[-depth:]) for part, depth in zip(parts, depths, strict=True)]
        paths: defaultdict[str, set[str]] = defaultdict(set)  # upper and lower case are the same
        for name, part in zip(names, parts, strict=True):
            paths[name.casefold()].add("/".join(part).casefold())
        ambiguous = (at for at, name in enumerate(names) if len(paths[name.casefold()]) > 1)
        if not (deeper := [at for at in ambiguous if depths[at] < len(parts[at])]):
            break
        for at in deeper:
            depths[at] += 1
    taken: set[str] = set()
    return [unused([name], taken) for name in names]


def _part(name: str) -> str:
    """A name without characters that end a path."""
    return plain(name).replace("/", "").replace("\\", "").strip(". ") or "video"


ENDING = ".video.json"


class ForeignFileError(ColocamError):
    """A file that is not ours stands where a result must be written; a caller with many videos may skip this one."""


def refuse_foreign(files: Sequence[Path], *, overwrite: bool) -> None:
    """Refuse to replace files that were not written by ``localize``, or that were changed since.

    Args:
        files: the results of one video; their description is checked too.
        overwrite: whether regular files may be replaced in any case, but for the video that they describe.
    """
    described = source_path(files[0])
    results, source = read_results(described), read_path(described)
    for path in (*files, described):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue  # nothing is there
        if not stat.S_ISREG(mode):
            raise ForeignFileError(f"{path} exists and is not a regular file: choose another output folder")
        if source is not None and os.path.realpath(source) == os.path.realpath(path):
            raise ForeignFileError(f"{path} is a video with its results next to it: choose another output folder")
        if overwrite:
            continue
        ours = source is not None if path == described else file_digest(path) in results.get(utf8(path.name), ())
        if not ours:
            why = "was changed since" if utf8(path.name) in results else "was not written by colocam"
            raise ForeignFileError(f"{path} exists and {why}: choose another output folder, or --overwrite")


def publish_results(stage: Path, files: Sequence[Path], source: SourceVideo, made: str | None) -> None:
    """Move whole results from the folder ``stage`` to their names, and describe them.

    At every moment the description lists what is there, so that a process that is killed leaves nothing that the next
    one would not replace. The fingerprint ``made``, which says that all is done, is written last.
    """
    old = read_results(source_path(files[0]))
    new = {utf8(path.name): [file_digest(stage / path.name)] for path in files}
    write_source(files[0], source, None, {name: new.get(name, []) + old.get(name, []) for name in old | new})
    for path in files:
        publish(stage / path.name, path)
    write_source(files[0], source, made, old | new)


def without_results(files: Sequence[Path]) -> list[Path]:
    """The files of one folder, without those that are results of ``localize``."""
    names = {utf8(path.name) for path in files}
    results = {
        name: digests
        for described in files
        if described.name.endswith(ENDING)
        for name, digests in read_results(described).items()
        if name in names
    }
    return [
        path
        for path in files
        if not (utf8(path.name) in results and path.is_file() and file_digest(path) in results[utf8(path.name)])
    ]
