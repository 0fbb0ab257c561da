"""Which result files are ours: those that the ``*.video.json`` beside them lists by name and digest."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ColocamError
from colocam.utils.digests import file_digest
from colocam.utils.files import publish, utf8
from colocam.video.description import SourceVideo, read_path, read_results, source_path, write_source

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
            raise ForeignFileError(f"{path} exists and is no regular file: choose another output folder")
        if source is not None and os.path.realpath(source) == os.path.realpath(path):
            raise ForeignFileError(f"{path} is a video whose results are beside it: choose another output folder")
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
