"""A folder of ``colocam label``: its parts, the list of them, and the videos that could not be labeled.

``parts/ab/<key>.parquet`` is the localization table of a video, named by what it was made from; it is either complete
or absent. ``videos.parquet`` says which part belongs to which video, and ``failures.parquet`` which videos were set
aside. Exports read one part at a time.

Tests: tests/labels/test_part_files.py, tests/labels/test_labeled_videos.py, tests/inference/test_label.py.
"""

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, NamedTuple, overload

import numpy as np
from pydantic import AliasChoices, AwareDatetime, Field, TypeAdapter

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.labeled_videos import LabeledVideo, read_video
from colocam.labels.table_files import file_name, unused
from colocam.utils.files import atomic_path, parse_json, utf8, write_json
from colocam.utils.locks import locked
from colocam.utils.tables import DamagedTableError, read_parquet
from colocam.video.description import SourceVideo, parse_source, source_card

if TYPE_CHECKING:
    import pyarrow as pa

VIDEO = "colocam.video"
"""Name under which the metadata of a part describe its video."""
MAGIC = b"PAR1"
KEY = re.compile(r"[0-9a-f]{64}")
LEAST = 12
"""Bytes of the smallest parquet file: the magic at both ends, and the length of the footer."""


def part_name(key: str) -> str:
    """Path of the part with a key in the folder of the labels."""
    return f"parts/{key[:2]}/{key}.parquet"


def part_path(labels: Path, key: str) -> Path:
    """Path of the part with a key."""
    return labels / part_name(key)


def is_whole(path: Path | str) -> bool:
    """Whether a file ends like a parquet file. Only its last eight bytes are read, since there are many parts.

    A file that was truncated, emptied or filled with zeros ends differently.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - twice as fast as Path.open
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            end = file.read(8)
    except OSError:
        return False
    return size >= LEAST and end[4:] == MAGIC and 0 < struct.unpack("<I", end[:4])[0] <= size - LEAST


def count_part(path: Path) -> tuple[int, int]:
    """Number of frames and of rows of a part.

    Raises:
        ColocamError: the part is damaged, or another program changed it.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra

    try:
        frames = read_parquet(path, ["frame"]).column("frame").cast(pa.int64()).to_numpy()
    except (DamagedTableError, ValueError, KeyError, pa.ArrowException) as error:
        raise ColocamError(f"cannot read {path}: delete it and run 'colocam label' again") from error
    return len(np.unique(frames)), len(frames)


def video_metadata(video: SourceVideo) -> dict[str, str]:
    """What a part says about its video: all but its path, so that equal videos have equal parts."""
    return {VIDEO: json.dumps({**source_card(video), "path": ""})}


def read_video_card(path: Path) -> SourceVideo:
    """The video of a part, without its path."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        stored = (pq.read_metadata(path).metadata or {})[VIDEO.encode()]
        return parse_source(parse_json(stored.decode("utf-8")))
    except KeyError as error:
        raise ColocamError(f"{path} does not describe its video: run 'colocam label' again") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ColocamError(f"cannot read {path}: run 'colocam label' again to recompute damaged parts") from error


@contextmanager
def durable(target: Path) -> Iterator[None]:
    """Make a file that is written and renamed inside survive a power failure: sync its folder and the one above."""
    target.parent.mkdir(parents=True, exist_ok=True)
    yield
    for folder in (target.parent, target.parent.parent):
        with suppress(OSError):  # some network file systems cannot sync a folder; Windows cannot open one
            file = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


NAME = "videos.parquet"
OLD_NAME = "films.parquet"
"""Up to version 0.2.0; its first column is ``film``."""
LISTED = {"video": "string", "part": "string", "frames": "int64", "rows": "int64", "content": "string"}
"""Columns of the list, and their types."""
OLD_LISTED = {"film" if name == "video" else name: kind for name, kind in LISTED.items()}


class Labeled(NamedTuple):
    """What is known of a labeled video.

    Attributes:
        key: of its part.
        frames: number of labeled frames, 0 where it is not known.
        rows: number of rows of its part.
        content: digest of the video, empty where it is not known.
    """

    key: str
    frames: int = 0
    rows: int = 0
    content: str = ""


def write_video_list(labels: Path, done: Mapping[str, Labeled], gone: Iterable[str] = ()) -> dict[str, str]:
    """Update ``videos.parquet``; the rows of other shards stay.

    Each video is listed once; otherwise a detector could be trained and validated with the same frames. Its name is
    the one that the last command gave it; if that command has several copies, the first name.

    Args:
        labels: folder of the labels.
        done: labeled videos by name.
        gone: videos that have no part with this model and these options.

    Returns:
        Names of copies that are not listed → the name under which the same video is.
    """
    with locked(labels, NAME, wait=True):
        old = read_video_list(labels)
        counted = {labeled.key: (labeled.frames, labeled.rows) for labeled in old.values()}
        names: dict[str, str] = {}  # by key and by content: one of the two may be unknown
        new: dict[str, Labeled] = {}
        copies: dict[str, str] = {}
        for name, labeled in sorted(done.items()):
            first = names.setdefault(labeled.key, name)
            if labeled.content and first == name:
                first = names.setdefault(labeled.content, name)
            if first != name:
                copies[name] = first
                continue
            frames = labeled.frames
            rows = labeled.rows
            if not frames:
                frames, rows = counted.get(labeled.key, (0, 0))
            if not frames:
                frames, rows = count_part(part_path(labels, labeled.key))
            new[utf8(name)] = Labeled(labeled.key, frames, rows, labeled.content)
        dropped = {utf8(name) for name in (*gone, *copies)}
        kept = {
            name: labeled
            for name, labeled in old.items()
            if name not in dropped and labeled.key not in names and labeled.content not in names
        }
        videos = kept | new
        if videos != old or not (labels / NAME).exists():
            listed = [
                {"video": name, "part": part_name(labeled.key), **labeled._asdict()}
                for name, labeled in sorted(videos.items())
            ]
            _write_rows(labels / NAME, listed, LISTED)
            (labels / OLD_NAME).unlink(missing_ok=True)
    return copies


def _write_rows(path: Path, rows: list[dict[str, object]], columns: Mapping[str, str]) -> None:
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, _schema(columns)), temporary, write_page_checksum=True)


def _schema(columns: Mapping[str, str]) -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    utc = {"timestamp": pa.timestamp("s", "UTC")}  # it has no alias
    return pa.schema([(name, utc.get(kind) or pa.type_for_alias(kind)) for name, kind in columns.items()])


def read_video_list(labels: Path) -> dict[str, Labeled]:
    """Videos by name; none if the table is missing or damaged: the next 'colocam label' restores it from the parts."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    old = not (labels / NAME).exists()
    path, listed = (labels / OLD_NAME, OLD_LISTED) if old else (labels / NAME, LISTED)
    try:
        columns = pq.read_table(path, schema=_schema(listed), page_checksum_verification=True).to_pydict()
    except (OSError, ValueError, pa.ArrowException):  # also text that is not UTF-8
        return {}
    contents = [content or "" for content in columns.pop("content")]  # lists of version 0.1.0 have none
    if any(None in column for column in columns.values()):
        return {}
    keys = (part.rpartition("/")[2].removesuffix(".parquet") for part in columns["part"])
    rows = map(Labeled, keys, columns["frames"], columns["rows"], contents)
    return dict(zip(columns["film" if old else "video"], rows, strict=True))


FAILURES = {"video": "string", "reason": "string", "attempts": "int64", "when": "timestamp"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a video was set aside.

    Attributes:
        video: name of the video in the catalogue.
        key: key of its part, which tells whether video, model and options are still the same; empty if unknown.
        reason: one line.
        attempts: how often it was tried.
        when: in UTC.
    """

    video: Annotated[str, Field(validation_alias=AliasChoices("video", "film"))]  # film: up to version 0.2.0
    key: str
    reason: str
    attempts: int
    when: AwareDatetime


_FAILURE = TypeAdapter(Failure)


class Failures:
    """The failures in a folder of labels, read when it is opened; several commands may write there at once."""

    def __init__(self, labels: Path) -> None:
        self._labels = labels
        self.by_video: dict[str, Failure] = {failure.video: failure for failure in _read_failures(labels / "failures")}

    def add(self, video: str, key: str, reason: str, attempts: int) -> None:
        """Set a video aside."""
        failure = Failure(utf8(video), key, utf8(reason), attempts, datetime.now(UTC).replace(microsecond=0))
        write_json(self._path(video), _FAILURE.dump_python(failure, mode="json"))
        self.by_video[failure.video] = failure

    def remove(self, video: str) -> None:
        """Forget the failure of a video that is labeled now."""
        if self.by_video.pop(utf8(video), None) is not None:
            self._path(video).unlink(missing_ok=True)

    def write_table(self) -> None:
        """Write ``failures.parquet`` from the failures of all commands."""
        failures = sorted(_read_failures(self._labels / "failures"), key=lambda failure: failure.video)
        _write_rows(self._labels / "failures.parquet", [asdict(failure) for failure in failures], FAILURES)

    def _path(self, video: str) -> Path:
        return self._labels / "failures" / f"{hashlib.sha256(os.fsencode(video)).hexdigest()}.json"


def _read_failures(folder: Path) -> list[Failure]:
    """All failures in a folder; a damaged file counts as none, so that its video is tried again."""
    failures = []
    for path in folder.glob("*.json"):
        with suppress(OSError, ValueError):  # pydantic's errors are among them
            failures.append(_FAILURE.validate_json(path.read_bytes(), strict=True))
    return failures


class LabeledVideos(Sequence[LabeledVideo]):
    """The videos of a folder of labels; each is read anew when it is asked for.

    The frames of a folder of images are numbered like those of a video file.
    """

    def __init__(self, readers: Sequence[Callable[[], LabeledVideo]]) -> None:
        self._readers = readers

    def __len__(self) -> int:
        return len(self._readers)

    @overload
    def __getitem__(self, at: int) -> LabeledVideo: ...
    @overload
    def __getitem__(self, at: slice) -> "LabeledVideos": ...
    def __getitem__(self, at: int | slice) -> "LabeledVideo | LabeledVideos":
        return LabeledVideos(self._readers[at]) if isinstance(at, slice) else self._readers[at]()


def _read_part(name: str, path: Path, table: Path) -> LabeledVideo:
    try:
        return read_video(name, table, replace(read_video_card(table), path=path))
    except DamagedTableError as error:
        raise ColocamError(f"{error}: delete it and run the same 'colocam label' again") from error


def is_labels(path: Path) -> bool:
    """Whether a path is a folder of ``colocam label``."""
    return any((path / name).is_file() for name in (NAME, OLD_NAME))


def read_labels(labels: Path, videos: Path | None) -> LabeledVideos:
    """The videos that ``videos.parquet`` lists.

    Args:
        labels: folder of the labels.
        videos: folder that the names of the videos are relative to; needed to write images.
    """
    if videos is not None and not videos.is_dir():
        raise ArgumentError("videos", f"must be the folder of the videos that {labels} labels, got {videos}")
    readers = []
    taken: set[str] = set()
    for video, labeled in sorted(read_video_list(labels).items()):
        if not KEY.fullmatch(labeled.key):
            raise ColocamError(f"{labels / NAME}: {video!r} has no part: run 'colocam label' again")
        path = PurePosixPath(video)
        name = unused([file_name(str(path.parent / path.stem))], taken)
        place = Path(video) if videos is None else _place(videos, video)
        readers.append(partial(_read_part, name, place, part_path(labels, labeled.key)))
    if not readers:
        raise ColocamError(f"{labels / NAME} lists no video: run 'colocam label' first")
    return LabeledVideos(readers)


def _place(folder: Path, video: str) -> Path:
    """Path of a video. Its name may begin with folders that ``folder`` already ends with, as in a table beside it."""
    parts, above = PurePosixPath(video).parts, folder.absolute().parts
    shorter = (folder.joinpath(*parts[n:]) for n in range(1, len(parts)) if parts[:n] == above[-n:])
    whole = folder / video
    return whole if whole.exists() else next((path for path in shorter if path.exists()), whole)
