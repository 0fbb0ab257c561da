"""The results of ``colocam localize``: the sink that writes a video's annotated copy and its localization table.

Tests: tests/inference/test_localize.py, tests/inference/test_users_files.py.
"""

import errno
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple, get_args

import numpy as np

from colocam.errors import ArgumentError, suggest
from colocam.inference.task import LocalizeVideo, Result, Worker, localize_into
from colocam.inference.videos import Video
from colocam.labels.review import class_in_doubt
from colocam.labels.table import LocalizationTable
from colocam.labels.table_files import publish_results, refuse_foreign
from colocam.temporal.cuts import WINDOW
from colocam.temporal.presence import absent_below
from colocam.types import Image, Localization, Overlay, VideoFrame
from colocam.utils.digests import text_digest
from colocam.utils.files import explain_os_errors
from colocam.utils.locks import locked, temporary_folder
from colocam.utils.prefetch import ahead
from colocam.utils.progress import graceful_stop, say
from colocam.video.description import describe, picture_names, read_made, source_path
from colocam.video.fence import decode, open_video
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import UnreadableError, VideoError
from colocam.video.reader import VideoInfo, VideoReader

TABLES = ("csv", "parquet")
FRAMES_WAITING = 7 * WINDOW
"""Frames between decoder and writer at most: windows in the stages and between them."""
MOST_WAITING = 2**29
"""Bytes of images that may wait for their boxes; a video with larger frames is decoded again for the writer."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What to read from a video and what to write.

    Attributes:
        table: format of the localization table, ``csv`` or ``parquet``.
        annotate: whether to write a video with the boxes drawn on it.
        choice: which frames.
        overlay: what that video shows beside the boxes, see :func:`colocam.video.drawing.draw_objects`.
    """

    table: str = "csv"
    annotate: bool = True
    choice: FrameChoice = field(default_factory=lambda: ALL)
    overlay: Overlay = "contour"

    def __post_init__(self) -> None:
        if self.table not in TABLES:
            raise ArgumentError("table", f"must be {' or '.join(TABLES)}, got {self.table}")
        if self.overlay not in get_args(Overlay):
            raise ArgumentError("overlay", f"{self.overlay}{suggest(self.overlay, get_args(Overlay))}")

    @property
    def endings(self) -> tuple[str, ...]:
        """Endings of the result files."""
        return (*(["mp4"] if self.annotate else []), self.table, "video.json")

    def files(self, video: Video, out: Path) -> "Written":
        """The result files of a video."""
        target = out / video.name
        table = target.with_name(f"{target.name}.{self.table}")
        return Written(target.with_name(f"{target.name}.mp4") if self.annotate else None, table)

    def all_files(self, video: Video, out: Path) -> list[Path]:
        """The result files of a video, and the file that describes it."""
        target = out / video.name
        return [target.with_name(f"{target.name}.{ending}") for ending in self.endings]


class Written(NamedTuple):
    """The files written for one video; ``video`` is None without an annotated video."""

    video: Path | None
    table: Path


@dataclass(frozen=True, slots=True)
class Tables:
    """A sink: a table, and an annotated video, in the folder ``out``.

    The first Ctrl-C ends an endless source such as a camera and keeps its files.

    Attributes:
        out: folder of the results.
        writing: what to read and write.
        recompute: whether to do again what is done.
        overwrite: whether to replace files that were not written by it.
    """

    out: Path
    writing: Writing
    recompute: bool = True
    overwrite: bool = False
    only_stored: ClassVar[bool] = False

    def done(self, video: Video, key: str | None) -> Result | None:
        """That nothing was ``written``, for a video whose files are there."""
        written = self.writing.files(video, self.out)
        _refuse_long_name(video, written)
        if self.recompute or not _is_done(written, self.made(key)):
            return None
        return {"written": False}

    def write(self, task: LocalizeVideo, key: str | None, worker: Worker) -> Result:
        """That results were ``written``, the number of ``frames``, and how many look ``empty``.

        Frames are not counted where the model does not know presence.
        """
        source, written = task.video.source, self.writing.files(task.video, self.out)
        _refuse_long_name(task.video, written)
        files = [path for path in written if path is not None]
        folder = written.table.parent
        with ExitStack() as outer:
            reader = outer.enter_context(open_video(source, threads=worker.threads))
            with explain_os_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                outer.enter_context(locked(folder, Path(task.video.name).name, wait=True))
                if (done := self.done(task.video, key)) is not None:  # by the command that held the lock
                    return done
                refuse_foreign(files, overwrite=self.overwrite)
                stage = outer.enter_context(temporary_folder(folder))
            video = None if written.video is None else stage / written.video.name
            counted = self._write(task, worker, reader, Written(video, stage / written.table.name))
            described = describe(source.path or Path(source.stem), reader)
            with explain_os_errors(folder):
                publish_results(stage, files, described, self.made(key))
        return {"written": True, **counted}

    def made(self, key: str | None) -> str | None:
        """Digest of the key and of what is written; None for a video that is not stored."""
        if key is None:
            return None
        written = asdict(self.writing)
        if not self.writing.annotate:
            del written["overlay"]  # which 0.2.0 did not have: its tables are found again
        return text_digest(json.dumps([key, written], sort_keys=True))

    def _write(self, task: LocalizeVideo, worker: Worker, reader: VideoReader, written: Written) -> dict[str, int]:
        localizer = worker.localizer(task.video.tag)
        source = reader.source
        choice = task.choice
        twice = written.video is not None and source.is_stored and _is_large(reader.info)
        images = written.video is not None and not twice
        counted = {"frames": 0, "empty": 0, "in_doubt": 0}
        bound = absent_below(localizer.options.presence)
        probability = array("d")
        with ExitStack() as stack:
            table = stack.enter_context(
                LocalizationTable(written.table, localizer.columns, picture_names(reader.pictures))
            )
            drawn = None
            if written.video is not None:
                again = decode(source, choice=choice, threads=reader.threads) if twice else None
                drawn = stack.enter_context(_Drawn(written.video, reader, self.writing, again))

            def write(frame: VideoFrame, objects: Sequence[Localization]) -> None:
                if (presence := objects[0].presence) is not None:
                    counted["frames"] += 1
                    counted["empty"] += presence < bound
                probability.append(objects[0].probability)
                for row in objects:
                    table.write(row)
                if drawn is not None:
                    drawn.write(frame, objects)

            title = f"localizing {source.path.name if source.path else source.name}"
            advance = stack.enter_context(worker.show(title, reader.estimate(choice), unit="frames"))
            stack.enter_context(nullcontext() if source.is_stored else graceful_stop())
            localize_into(localizer, reader, choice, write, images=images, passed=advance)
        if localizer.options.tag is None and class_in_doubt(np.asarray(probability)):
            # Presence is that of the class, so where the class may be wrong, it does not say which frames are empty.
            return {"frames": 0, "empty": 0, "in_doubt": 1}
        return counted


class _Drawn(ExitStack):
    """The annotated video; frames that come without images are decoded ``again``."""

    def __init__(self, path: Path, reader: VideoReader, writing: Writing, again: Iterator[VideoFrame] | None) -> None:
        super().__init__()
        from colocam.video.writer import AnnotatedVideo  # noqa: PLC0415 - a table alone draws nothing

        self._source = reader.source
        # An annotated part of a video begins at 0; the clock of a camera does not.
        self._shift = 0.0 if writing.choice.from_the_start and not reader.source.live else None
        self._video = self.enter_context(AnnotatedVideo(path, reader.info, writing.overlay))
        self._again = None if again is None else self.enter_context(closing(ahead(again, 1, "drawing")))

    def write(self, frame: VideoFrame, objects: Sequence[Localization]) -> None:
        shift = self._shift = frame.pts if self._shift is None else self._shift
        image = frame.image if self._again is None else self._image_of(frame, self._again)
        self._video.write(image, *(replace(one, pts=one.pts - shift) for one in objects))

    def _image_of(self, frame: VideoFrame, decoded: Iterator[VideoFrame]) -> Image:
        for read in decoded:
            if read.index == frame.index:
                return read.image
        raise UnreadableError(f"cannot read {self._source.name}: it changed while it was being read")


def _is_large(info: VideoInfo) -> bool:
    """Whether frames that wait for their boxes would take too much memory."""
    return FRAMES_WAITING * info.width * info.height * 3 > MOST_WAITING


def _refuse_long_name(video: Video, written: Written) -> None:
    """Refuse a video whose result files would have too long names."""
    described = source_path(written.table)
    folder = next(parent for parent in described.absolute().parents if parent.exists())
    try:
        (folder / described.name).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise VideoError(
                f"cannot write the results of {video.source.name}: their file names would be too long: rename the video"
            ) from error


def _are_files(written: Written) -> bool:
    return all(path.is_file() for path in written if path is not None)


def _is_done(written: Written, made: str | None) -> bool:
    done = made is not None and _are_files(written) and read_made(written.table) == made
    if done:
        say(f"{written.table} exists for the same video, model and settings, so it is kept (--overwrite recomputes it)")
    return done
