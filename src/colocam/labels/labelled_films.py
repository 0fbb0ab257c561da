"""Read the parts in a folder of ``colocam label``: one video at a time is in memory."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import overload

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.label_folder import NAME, part_path, read_video_card, read_video_list
from colocam.labels.labelled_videos import LabelledVideo, read_video
from colocam.labels.table_files import file_name, unused
from colocam.utils.tables import DamagedTableError

_KEY = re.compile(r"[0-9a-f]{64}")


class LabelledFilms(Sequence[LabelledVideo]):
    """The videos of a folder of labels; each is read anew when it is asked for.

    The frames of a folder of images are numbered like those of a video file.
    """

    def __init__(self, readers: Sequence[Callable[[], LabelledVideo]]) -> None:
        self._readers = readers

    def __len__(self) -> int:
        return len(self._readers)

    @overload
    def __getitem__(self, at: int) -> LabelledVideo: ...
    @overload
    def __getitem__(self, at: slice) -> "LabelledFilms": ...
    def __getitem__(self, at: int | slice) -> "LabelledVideo | LabelledFilms":
        return LabelledFilms(self._readers[at]) if isinstance(at, slice) else self._readers[at]()


def _read(name: str, path: Path, table: Path) -> LabelledVideo:
    try:
        return read_video(name, table, replace(read_video_card(table), path=path))
    except DamagedTableError as error:
        raise ColocamError(f"{error}: delete it and run the same 'colocam label' again") from error


def is_labels(path: Path) -> bool:
    """Whether a path is a folder of ``colocam label``."""
    return path.is_dir() and (path / NAME).is_file()


def read_labels(labels: Path, videos: Path | None) -> LabelledFilms:
    """The videos that ``films.parquet`` lists.

    Args:
        labels: folder of the labels.
        videos: folder that the names of the videos are relative to; needed to write images.
    """
    if videos is not None and not videos.is_dir():
        raise ArgumentError("videos", f"must be the folder of the videos that {labels} labels, got {videos}")
    readers, taken = [], set[str]()
    for video, one in sorted(read_video_list(labels).items()):
        if not _KEY.fullmatch(one.key):
            raise ColocamError(f"{labels / NAME}: {video!r} has no part: run 'colocam label' again")
        path = PurePosixPath(video)
        name = unused([file_name(str(path.parent / path.stem))], taken)
        place = Path(video) if videos is None else _place(videos, video)
        readers.append(partial(_read, name, place, part_path(labels, one.key)))
    if not readers:
        raise ColocamError(f"{labels / NAME} lists no film: run 'colocam label' first")
    return LabelledFilms(readers)


def _place(folder: Path, video: str) -> Path:
    """Path of a video; its name may begin with folders that ``folder`` ends with, as in a table beside it."""
    parts, above = PurePosixPath(video).parts, folder.absolute().parts
    shorter = (folder.joinpath(*parts[n:]) for n in range(1, len(parts)) if parts[:n] == above[-n:])
    whole = folder / video
    return whole if whole.exists() else next((path for path in shorter if path.exists()), whole)
