"""Localise in one film: from its frames to its annotated video and its localisation table."""

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import NamedTuple

from colocam.errors import ArgumentError
from colocam.inference.jobs import Job, fingerprint
from colocam.inference.localizer import Localizer
from colocam.labels.table import LocalizationTable
from colocam.labels.table_files import publish_results, refuse_foreign
from colocam.segment import segmenter_files
from colocam.temporal.cuts import WINDOW
from colocam.types import Image, VideoFrame
from colocam.utils.digests import FileDigests
from colocam.utils.files import explain_os_errors
from colocam.utils.locks import locked, temporary_folder
from colocam.utils.prefetch import ahead
from colocam.utils.progress import Advance, graceful_stop, progress, say, stop_requested
from colocam.video.description import describe, picture_names, read_made, source_path
from colocam.video.fence import FencedReader, decode, open_video
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.frame_ring import FrameLayout
from colocam.video.input import UnreadableError, VideoError, VideoInput
from colocam.video.reader import VideoInfo, VideoReader

Show = Callable[..., AbstractContextManager[Advance]]

TABLES = ("csv", "parquet")
FRAMES_AHEAD = 4
"""Localised frames that may wait for the writer."""
FRAMES_WAITING = 7 * WINDOW
"""Frames between decoder and writer at most: windows in the stages and between them."""
MOST_WAITING = 2**29
"""Bytes of images that may wait for their boxes; a film with larger frames is decoded again for the writer."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What to read from a video and what to write.

    Attributes:
        table: format of the localisation table, ``csv`` or ``parquet``.
        annotate: whether to write a video with the boxes drawn on it.
        choice: which frames.
    """

    table: str = "csv"
    annotate: bool = True
    choice: FrameChoice = ALL

    def __post_init__(self) -> None:
        if self.table not in TABLES:
            raise ArgumentError("table", f"must be {' or '.join(TABLES)}, got {self.table}")


class Written(NamedTuple):
    """The files written for one video; ``video`` is None without an annotated video."""

    video: Path | None
    table: Path


@dataclass(frozen=True, slots=True)
class Command:
    """What ``localize`` does with each of its films.

    Attributes:
        run: run folder of the model, or an ONNX file.
        writing: what to read and write.
        recompute: whether to do again what is done.
        overwrite: whether to replace files that were not written by it.
        device: as the user named it.
        refine: the segmenter, see :func:`colocam.segment.load_segmenter`.
        threads: decoder threads, 0 for one per core.
        digests: file that remembers digests of films; None: none does.
    """

    run: Path
    writing: Writing
    recompute: bool = True
    overwrite: bool = False
    device: str | None = None
    refine: str | Path | None = None
    threads: int = 0
    digests: Path | None = None


def endings(writing: Writing) -> tuple[str, ...]:
    """Endings of the result files."""
    return (*(["mp4"] if writing.annotate else []), writing.table, "video.json")


def result_files(job: Job, writing: Writing) -> Written:
    """The files of a film."""
    return Written(job.file("mp4") if writing.annotate else None, job.file(writing.table))


def localize_film(
    localizer: Localizer, job: Job, command: Command, digests: FileDigests, show: Show = progress
) -> bool:
    """Localise in one film, if its results are not there yet; whether they were written.

    The first Ctrl-C ends an endless source such as a camera and keeps its files.

    Args:
        localizer: the model and its options.
        job: the film.
        command: what to do.
        digests: of files that were read before.
        show: shows progress, as :func:`progress` does.
    """
    writing = command.writing
    source, written = job.source, result_files(job, writing)
    _refuse_long_name(job, written)
    made = _fingerprint(job, localizer, command, digests)
    files, folder = [path for path in written if path is not None], written.table.parent
    if not command.recompute and _is_done(written, made):
        return False
    with ExitStack() as outer:
        reader = outer.enter_context(open_video(source, threads=command.threads))
        with explain_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            outer.enter_context(locked(folder, job.target.name, wait=True))
            if not command.recompute and _is_done(written, made):  # by the command that held the lock
                return False
            refuse_foreign(files, overwrite=command.overwrite)
            stage = outer.enter_context(temporary_folder(folder))
        video = None if written.video is None else stage / written.video.name
        staged = Written(video, stage / written.table.name)
        _process(localizer, reader, staged, writing.choice, show)
        count = reader.count if reader.ended else max(reader.count, reader.total)
        described = describe(source.path or Path(source.stem), reader.info, count, reader.pictures)
        with explain_os_errors(folder):
            publish_results(stage, files, described, made)
    digests.save()
    return True


def _fingerprint(job: Job, localizer: Localizer, command: Command, digests: FileDigests) -> str | None:
    settings = {**asdict(command.writing), **asdict(localizer.options), "device": command.device, "batch": None}
    segmenter = () if command.refine is None else segmenter_files(command.refine)
    try:
        return fingerprint(command.run, job.source, settings, segmenter, digests)
    except OSError as error:
        raise UnreadableError(f"cannot read {error.filename or job.source.name}: {error.strerror}") from error


def _refuse_long_name(job: Job, written: Written) -> None:
    """Refuse a video whose result files would have too long names."""
    described = source_path(written.table)
    folder = next(parent for parent in described.absolute().parents if parent.exists())
    try:
        (folder / described.name).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise VideoError(
                f"cannot write the results of {job.source.name}: its name is too long for their names: rename the video"
            ) from error


def _is_done(written: Written, made: str | None) -> bool:
    files = [path for path in written if path is not None]
    done = made is not None and all(path.is_file() for path in files) and read_made(written.table) == made
    if done:
        say(f"{written.table} exists for the same video, model and settings: kept (--overwrite recomputes it)")
    return done


def _process(localizer: Localizer, reader: VideoReader, written: Written, choice: FrameChoice, show: Show) -> None:
    """Write the localisation table and the annotated video."""
    source = reader.source
    with ExitStack() as stack:
        listed = stack.enter_context(
            LocalizationTable(written.table, localizer.columns, picture_names(reader.pictures))
        )
        drawn = None
        if written.video is not None:
            from colocam.inference.sinks import AnnotatedVideo  # noqa: PLC0415 - a table alone draws nothing

            drawn = stack.enter_context(AnnotatedVideo(written.video, reader.info))
        title = f"localizing {source.path.name if source.path else source.name}"
        advance = stack.enter_context(show(title, reader.estimate(choice), unit="frames"))
        stack.enter_context(nullcontext() if source.is_stored else graceful_stop())
        twice = drawn is not None and source.is_stored and _is_large(reader.info)
        images = drawn is not None and not twice
        if isinstance(reader, FencedReader):  # frames are resized where they are decoded
            reader.layout = FrameLayout(localizer.card.size, images=images or localizer.segmenter is not None)
        frames = _until_stopped(reader.frames(choice))
        stopping = Event()
        stream = localizer.stream(frames, live=source.live, images=images, passed=advance, stopping=stopping)
        found = stack.enter_context(closing(ahead(stream, FRAMES_AHEAD, "localizer", on_stop=stopping.set)))
        again = decode(source, choice=choice, threads=reader.threads)
        decoded = stack.enter_context(closing(ahead(again, 1, "drawing"))) if twice else None
        shift: float | None = None
        for _, told in groupby(found, key=lambda one: one[0].index):
            (frame, *_), objects = zip(*told, strict=True)
            if shift is None:  # an annotated part of a video begins at 0; the clock of a camera does not
                shift = 0.0 if choice.from_the_start and not source.live else frame.pts
            for one in objects:
                listed.write(one)
            if drawn is not None:
                image = frame.image if decoded is None else _image_of(frame, decoded, source)
                drawn.write(image, *(replace(one, pts=one.pts - shift) for one in objects))
        if shift is None:
            many = f"its {reader.count} frames" if reader.ended else "its frames"
            raise UnreadableError(f"{source.name} has no frame {choice}; {many} begin at second {reader.start:g}")


def _is_large(info: VideoInfo) -> bool:
    """Whether frames that wait for their boxes would take too much memory."""
    return FRAMES_WAITING * info.width * info.height * 3 > MOST_WAITING


def _image_of(frame: VideoFrame, decoded: Iterator[VideoFrame], source: VideoInput) -> Image:
    """The image of a frame; ``decoded`` yields it and those before it."""
    for one in decoded:
        if one.index == frame.index:
            return one.image
    raise UnreadableError(f"cannot read {source.name}: it was changed while it was read")


def _until_stopped(frames: Iterable[VideoFrame]) -> Iterator[VideoFrame]:
    for frame in frames:
        yield frame
        if stop_requested():
            return
