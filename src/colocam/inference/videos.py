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
from typing import Any

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.table_files import ForeignFileError, without_results
from colocam.maps.prior import require_prior
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
class Video:
    """A video to be done. Only this type says where it is, how its results are called, and what it shows.

    Attributes:
        source: the video, possibly a folder of images.
        name: with slashes, unique in a command: names the results (``localize``), or the row of the catalogue
            (``label``).
        tag: class that the video shows; None: that of the command, or the one that the classifier finds.
    """

    source: VideoInput
    name: str
    tag: str | None = None

    @property
    def stored(self) -> Path | None:
        """Its file or folder; None for a camera, an address or the standard input."""
        return self.source.path if self.source.is_stored else None

    @property
    def path(self) -> Path:
        """Its file or folder, which may be missing; an error for a source that is none.

        Raises:
            UnreadableError: it is an address, a device or the standard input.
        """
        if self.source.path is None:
            raise UnreadableError(f"{self.source.name} is not a stored video")
        return self.source.path

    def digest(self, digests: FileDigests) -> str:
        """Digest of its content; all of it is read, unless its digest is remembered.

        Raises:
            UnreadableError: it cannot be read.
        """
        path = self.path
        try:
            return digests.of_files(images_of(path)) if path.is_dir() else digests.of_file(path)
        except OSError as error:
            raise UnreadableError(f"cannot read {error.filename or path}: {error.strerror}") from error

    def quick_digest(self, digests: FileDigests) -> str | None:
        """Digest of its content; None where it is not remembered, and too long to read it now."""
        path = self.path
        try:
            return digests.quick(path)
        except IsADirectoryError:
            return digests.quick_of_files(images_of(path))


def find_videos(videos: Sequence[str | Path], out: Path, *, format: str | None = None) -> list[Video]:  # noqa: A002
    """The named videos, in order; a folder stands for all videos in and below it but for those in ``out``.

    The names keep the folders' structure. A folder that holds images and no video file is a video itself.
    Videos whose names differ only in their ending keep it in the names of their results.
    """
    named: list[Video] = []
    for video in videos:
        source = VideoInput(str(video), format)
        if source.path is None or not source.is_folder:
            named.append(Video(source, source.stem))
            continue
        sources = [VideoInput(str(path), format, must_be_stored=True) for path in videos_below(source.path, out)]
        if not sources:
            raise ColocamError(f"{source.path} contains no video: name the videos, or a folder that holds them")
        for listed in sources:
            folder = Path(listed.address).relative_to(source.path).parent
            named.append(Video(listed, (folder / listed.stem).as_posix()))
    named = _with_own_names(named)
    twice = [name for name, count in Counter(video.name for video in named).items() if count > 1]
    if twice:
        both = [video.source.name for video in named if video.name == twice[0]]
        raise ColocamError(
            f"{both[0]} and {both[1]} have the same name: give the folder that holds both, or use two commands"
        )
    return named


def stored_videos(videos: Sequence[Video]) -> frozenset[str]:
    """Real paths of the videos of a command."""
    return frozenset(os.path.realpath(video.source.path) for video in videos if video.source.path is not None)


def refuse_overwriting(files: Sequence[Path], videos: frozenset[str]) -> None:
    """Refuse result files that would overwrite one of ``videos``, or be written among the images of one."""
    folder = os.path.realpath(files[0].parent)
    for file in files:
        if os.path.join(folder, file.name) in videos:  # noqa: PTH118 - realpath gives text
            raise ForeignFileError(f"{file} would overwrite the video itself: choose another output folder")
        if folder in videos and file.suffix == ".mp4":  # a folder with a video in it is no folder of images
            raise ForeignFileError(f"{file} would be written among the images: choose another output folder")


def _with_own_names(videos: list[Video]) -> list[Video]:
    """Let videos of one name keep their endings.

    The longer name may be that of another video, as with a.avi, a.mkv and a.mkv.mp4, which then keeps its ending too.
    """
    while True:
        often = Counter(video.name for video in videos)
        longer = [_with_its_ending(video) if often[video.name] > 1 else video for video in videos]
        if longer == videos:
            return videos
        videos = longer


def _with_its_ending(video: Video) -> Video:
    path = video.source.path
    return video if path is None else Video(video.source, Path(video.name).with_name(path.name).as_posix())


def videos_below(folder: Path, out: Path) -> list[Path]:
    """Files that may be videos, and folders of images, in natural order.

    Without hidden files, results of this or another command, and images beside videos.

    Raises:
        ColocamError: the folder is the root of the file system, where most files look like videos to FFmpeg.
    """
    if str(folder.resolve()) == "/":
        raise ColocamError(f"{folder} is the whole file system: name the folder that contains the videos")
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
        say(f"skipped {folder}: it belongs to the kernel")
        return False
    return True


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
        videos = [
            Video(stored_source(path), str(path)[above:].replace(os.sep, "/")) for path in videos_below(catalogue, out)
        ]
    elif not stored(catalogue).exists():
        raise ColocamError(f"{catalogue}: there is no such folder or table")
    elif catalogue.suffix.lower() in {".csv", ".parquet"}:
        videos = _listed(catalogue)
    else:
        raise ColocamError(f"{catalogue}: give a folder of videos, or a table whose name ends in .csv or .parquet")
    if not videos:
        raise ColocamError(f"{catalogue} contains no video: name a folder or a table of videos")
    return videos


def stored_source(path: Path) -> VideoInput:
    """A file or folder, whatever its name looks like."""
    return VideoInput(str(path), must_be_stored=True)


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
    return [Video(stored_source(table.parent / name), name, tag or None) for name, tag in zip(names, tags, strict=True)]


FORMAT = 3
"""Changes when the same video, model and options give other rows."""


def model_key(
    run: Path, settings: dict[str, Any], segmenter: Sequence[Path] = (), prior: str | Path | None = None
) -> str:
    """Digest of the content of model, segmenter and prior and of the settings, without paths and times."""
    digests = FileDigests()
    model = sorted(run.glob("model.*")) if run.is_dir() else [run]
    with_prior = [] if prior is None else [[require_prior(prior)]]  # keys without one are those of 0.2.0
    contents = [[digests.of_file(path) for path in files] for files in (model, segmenter, *with_prior)]
    return text_digest(json.dumps([FORMAT, contents, settings], sort_keys=True, default=str))


def prior_digest(path: str | Path) -> str:
    """Digest of the content of a prior."""
    return FileDigests().of_file(require_prior(path))


def video_key(model: str, tag: str | None, content: str) -> str:
    """Key of the results of a video with a tag and the digest of its content; ``model`` is a :func:`model_key`."""
    return text_digest(json.dumps([model, content, tag]))
