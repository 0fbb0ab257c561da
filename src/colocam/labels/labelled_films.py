"""Read the parts in a folder of ``colocam label``: one film at a time is in memory."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple, overload

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.label_folder import NAME, part_path, read_video_card, read_video_list
from colocam.labels.labelled_videos import LabelledVideo, read_video
from colocam.labels.table_files import file_name, unused
from colocam.utils.tables import DamagedTableError

_KEY = re.compile(r"[0-9a-f]{64}")


class _Film(NamedTuple):
    """A film: its unique name in the export, its path, the table of its labels."""

    name: str
    path: Path
    table: Path


class LabelledFilms(Sequence[LabelledVideo]):
    """The films of a folder of labels; each is read anew when it is asked for.

    The frames of a folder of images are numbered like those of a film.
    """

    def __init__(self, films: Sequence[_Film]) -> None:
        self._films = films

    def __len__(self) -> int:
        return len(self._films)

    @overload
    def __getitem__(self, at: int) -> LabelledVideo: ...
    @overload
    def __getitem__(self, at: slice) -> "LabelledFilms": ...
    def __getitem__(self, at: int | slice) -> "LabelledVideo | LabelledFilms":
        if isinstance(at, slice):
            return LabelledFilms(self._films[at])
        name, path, table = self._films[at]
        try:
            return read_video(name, table, replace(read_video_card(table), path=path))
        except DamagedTableError as error:
            raise ColocamError(f"{error}: delete it and run the same 'colocam label' again") from error


def is_labels(path: Path) -> bool:
    """Whether a path is a folder of ``colocam label``."""
    return path.is_dir() and (path / NAME).is_file()


def read_labels(labels: Path, films: Path | None) -> LabelledFilms:
    """The films that ``films.parquet`` lists.

    Args:
        labels: folder of the labels.
        films: folder that the names of the films are relative to; needed to write images.
    """
    if films is not None and not films.is_dir():
        raise ArgumentError("videos", f"must be the folder of the films that {labels} labels, got {films}")
    found, taken = [], set[str]()
    for film, one in sorted(read_video_list(labels).items()):
        if not _KEY.fullmatch(one.key):
            raise ColocamError(f"{labels / NAME}: {film!r} has no part: run 'colocam label' again")
        path = PurePosixPath(film)
        name = unused([file_name(str(path.parent / path.stem))], taken)
        found.append(_Film(name, Path(film) if films is None else _place(films, film), part_path(labels, one.key)))
    if not found:
        raise ColocamError(f"{labels / NAME} lists no film: run 'colocam label' first")
    return LabelledFilms(found)


def _place(films: Path, film: str) -> Path:
    """Path of a film; its name may begin with folders that ``films`` ends with, as names from a table beside it do."""
    parts, above = PurePosixPath(film).parts, films.absolute().parts
    shorter = (films.joinpath(*parts[n:]) for n in range(1, len(parts)) if parts[:n] == above[-n:])
    whole = films / film
    return whole if whole.exists() else next((path for path in shorter if path.exists()), whole)
