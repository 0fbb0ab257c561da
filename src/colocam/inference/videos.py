"""Which videos a command does, how their results are called, and the key that says what a result was made from."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.table_files import ForeignFileError, without_results
from colocam.utils.digests import FileDigests, text_digest
from colocam.utils.files import stored
from colocam.utils.progress import Advance, progress, say
from colocam.utils.tables import read_cells
from colocam.video.images import IMAGE_ENDINGS, NOT_VIDEO_ENDINGS, images_of, natural_key
from colocam.video.input import UnreadableError, VideoInput

SECONDS_IN_SILENCE = 1.0
"""A look for videos that takes longer says so."""
OF_THE_KERNEL = frozenset({"proc", "sys", "dev"})
"""Names of file systems without stored files; some of their files never end."""


@dataclass(frozen=True, slots=True)
class Job:
    """One video and where its results go.

    Attributes:
        source: the video, possibly a folder of images.
        target: folder and name of the results, without an ending.
    """

    source: VideoInput
    target: Path

    def file(self, ending: str) -> Path:
        """Path of a result file."""
        return self.target.with_name(f"{self.target.name}.{ending}")


def find_jobs(videos: Sequence[str | Path], out: Path, *, format: str | None = None) -> list[Job]:  # noqa: A002
    """Jobs for the named videos, in order; a folder stands for all videos in and below it.

    Results keep the folders' structure in ``out``. A folder that holds images and no video file is a video itself.
    Videos whose names differ only in their ending keep it in the names of their results.
    """
    jobs: list[Job] = []
    for video in videos:
        source = VideoInput(str(video), format)
        if source.path is None or not source.is_folder:
            jobs.append(Job(source, out / source.stem))
            continue
        found = [VideoInput(str(path), format, must_be_stored=True) for path in videos_below(source.path, out)]
        if not found:
            raise ColocamError(f"{source.path}: no video in it: name the videos, or a folder that holds them")
        jobs += [Job(one, out / Path(one.address).relative_to(source.path).parent / one.stem) for one in found]
    jobs = _with_own_names(jobs)
    twice = [target for target, count in Counter(job.target for job in jobs).items() if count > 1]
    if twice:
        both = [job.source.name for job in jobs if job.target == twice[0]]
        raise ColocamError(
            f"{both[0]} and {both[1]} have the same name: give the folder that holds both, or use two commands"
        )
    return jobs


def stored_videos(jobs: Sequence[Job]) -> frozenset[str]:
    """Real paths of the videos of a command."""
    return frozenset(os.path.realpath(job.source.path) for job in jobs if job.source.path is not None)


def refuse_overwriting(job: Job, videos: frozenset[str], *endings: str) -> None:
    """Refuse results that would overwrite one of ``videos``, or be written among the images of one."""
    folder = os.path.realpath(job.target.parent)
    for file in (job.file(ending) for ending in endings):
        if os.path.join(folder, file.name) in videos:  # noqa: PTH118 - realpath gives text
            raise ForeignFileError(f"{file} would overwrite the video itself: choose another output folder")
        if folder in videos and file.suffix == ".mp4":  # a folder with a video in it is no folder of images
            raise ForeignFileError(f"{file} would be among the images: choose another output folder")


def _with_own_names(jobs: list[Job]) -> list[Job]:
    """Let videos of one name keep their endings.

    The longer name may be that of another video, as with a.avi, a.mkv and a.mkv.mp4, which then keeps its ending too.
    """
    while True:
        often = Counter(job.target for job in jobs)
        longer = [_with_its_ending(job) if often[job.target] > 1 else job for job in jobs]
        if longer == jobs:
            return jobs
        jobs = longer


def _with_its_ending(job: Job) -> Job:
    return job if job.source.path is None else Job(job.source, job.target.with_name(job.source.path.name))


def videos_below(folder: Path, out: Path) -> list[Path]:
    """Files that may be videos, and folders of images, in natural order.

    Without hidden files, results of this or another command, and images beside videos.

    Raises:
        ColocamError: the folder is the root of the file system, where most files look like videos to FFmpeg.
    """
    if str(folder.resolve()) == "/":
        raise ColocamError(f"{folder} is the whole file system: name the folder that holds the videos")
    inside = out.resolve()
    found: list[Path] = []
    began, seen = time.monotonic(), 0
    advance: Advance | None = None
    with ExitStack() as stack:
        for parent, folders, files in os.walk(folder):
            here = Path(parent)
            folders[:] = [one for one in folders if _is_searched(here / one, inside)]
            visible = without_results([here / name for name in files if not name.startswith(".")])
            endings = [path.suffix.lower() for path in visible]
            videos = [path for path, ending in zip(visible, endings, strict=True) if ending not in NOT_VIDEO_ENDINGS]
            found += videos or ([here] if IMAGE_ENDINGS.intersection(endings) else [])
            seen += len(files)
            if advance is not None:
                advance(len(files), f"{len(found)} may be videos")
            elif time.monotonic() - began > SECONDS_IN_SILENCE:
                advance = stack.enter_context(progress(f"looking for videos in {folder}", 0, unit="files", done=seen))
    above = len(str(folder))
    return sorted(found, key=lambda path: natural_key(str(path)[above:]))


def _is_searched(folder: Path, out: Path) -> bool:
    """Whether to look for videos in a folder; not in ``out``, which is resolved."""
    if folder.name.startswith(".") or folder.resolve() == out:
        return False
    if folder.name in OF_THE_KERNEL and folder.is_mount():
        say(f"left out {folder}: it is a file system of the kernel")
        return False
    return True


class Video(NamedTuple):
    """A video of a catalogue.

    Attributes:
        name: relative to the catalogue, with slashes; unique in it.
        path: a video file, or a folder of images.
        tag: class that the video shows; None: that of the command, or the one that the classifier finds.
    """

    name: str
    path: Path
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` of ``count``, from 1."""

    index: int = 1
    count: int = 1

    def has(self, video: Video) -> bool:
        """Whether a video belongs to this shard; a hash of its name decides, which all machines compute alike."""
        digest = hashlib.blake2b(os.fsencode(video.name), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.index - 1

    def __str__(self) -> str:
        return f"{self.index}-of-{self.count}"


def parse_shard(text: str) -> Shard:
    """Parse ``I/N``, 1 ≤ I ≤ N."""
    parts = text.split("/")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        shard = Shard(*map(int, parts))
        if 1 <= shard.index <= shard.count:
            return shard
    raise ArgumentError("shard", f"must be I/N with 1 ≤ I ≤ N, e.g. 3/8, got {text}")


def read_videos(catalogue: Path, out: Path) -> list[Video]:
    """The videos of a catalogue in order.

    Args:
        catalogue: a folder, whose videos in and below it are taken as ``colocam localize`` takes them; or a CSV or
            parquet table with the column ``path``, relative to its folder, and optionally ``tag``.
        out: folder of the labels, which is skipped if it lies in ``catalogue``.
    """
    if catalogue.is_dir():
        # Text is cut, since there may be many videos, and Path.relative_to takes ten times as long.
        above = len(str(catalogue / "x")) - 1
        videos = [Video(str(path)[above:].replace(os.sep, "/"), path) for path in videos_below(catalogue, out)]
    elif not stored(catalogue).exists():
        raise ColocamError(f"{catalogue}: there is no such folder or table")
    elif catalogue.suffix.lower() in {".csv", ".parquet"}:
        videos = _listed(catalogue)
    else:
        raise ColocamError(f"{catalogue}: give a folder of videos, or a table whose name ends in .csv or .parquet")
    if not videos:
        raise ColocamError(f"{catalogue}: no video in it")
    return videos


def _listed(table: Path) -> list[Video]:
    cells = read_cells(table, required=("path",))
    names, tags = cells.text("path"), cells.text("tag")
    twice = Counter(names)
    for row, name in enumerate(names):
        if not name:
            cells.fail(row, "path is empty: give the video, relative to the table")
        if "\0" in name:
            cells.fail(row, "path has a NUL character, which no file name can hold")
        if twice[name] > 1:
            cells.fail(row, f"path {name!r} is listed twice")
    return [Video(name, table.parent / name, tag or None) for name, tag in zip(names, tags, strict=True)]


FORMAT = 3
"""Changes when the same video, model and options give other rows."""


def model_key(run: Path, settings: dict[str, Any], segmenter: Sequence[Path] = ()) -> str:
    """Digest of the content of model and segmenter and of the settings, without paths and times."""
    digests = FileDigests()
    model = sorted(run.glob("model.*")) if run.is_dir() else [run]
    contents = [[digests.of_file(path) for path in files] for files in (model, segmenter)]
    return text_digest(json.dumps([FORMAT, contents, settings], sort_keys=True, default=str))


def video_key(model: str, tag: str | None, content: str) -> str:
    """Key of the results of a video with a tag and the digest of its content; ``model`` is a :func:`model_key`."""
    return text_digest(json.dumps([model, content, tag]))


def source_digest(path: Path, digests: FileDigests) -> str:
    """Digest of the content of a video; all of it is read, unless its digest is remembered.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        return digests.of_files(images_of(path)) if path.is_dir() else digests.of_file(path)
    except OSError as error:
        raise UnreadableError(f"cannot read {error.filename or path}: {error.strerror}") from error


def quick_digest(path: Path, digests: FileDigests) -> str | None:
    """Digest of the content of a video; None where it is not remembered, and too long to read it now."""
    try:
        return digests.quick(path)
    except IsADirectoryError:
        return digests.quick_of_files(images_of(path))
