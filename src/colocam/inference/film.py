"""Localise in one film: from its frames to its annotated video and its localisation table."""

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ArgumentError
from colocam.inference.jobs import Job, fingerprint
from colocam.inference.localizer import Localizer
from colocam.inference.result_files import publish_results, refuse_foreign
from colocam.inference.table import LocalizationTable
from colocam.segment.open_segmenter import segmenter_files
from colocam.types import VideoFrame
from colocam.utils.files import explain_os_errors
from colocam.utils.interrupt import graceful_stop, stop_requested
from colocam.utils.locks import locked
from colocam.utils.prefetch import ahead
from colocam.utils.progress import Advance, progress, say
from colocam.utils.temporary import temporary_folder
from colocam.video.description import describe, picture_names, read_made, source_path
from colocam.video.fence import open_video
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.frame_ring import FrameLayout
from colocam.video.input import UnreadableError, VideoError
from colocam.video.reader import VideoReader

Show = Callable[..., AbstractContextManager[Advance]]

TABLES = ("csv", "parquet")
FRAMES_AHEAD = 4
"""Localised frames that may wait for the writer."""
TEMPORARY_PART = 16
"""Most bytes that the name of a temporary file has more than that of its result."""


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
        refine: the segmenter, see :func:`colocam.segment.open_segmenter.load_segmenter`.
        threads: decoder threads, 0 for one per core.
    """

    run: Path
    writing: Writing
    recompute: bool = True
    overwrite: bool = False
    device: str | None = None
    refine: str | Path | None = None
    threads: int = 0


def endings(writing: Writing) -> tuple[str, ...]:
    """Endings of the result files."""
    return (*(["mp4"] if writing.annotate else []), writing.table, "video.json")


def result_files(job: Job, writing: Writing) -> Written:
    """The files of a film."""
    return Written(job.file("mp4") if writing.annotate else None, job.file(writing.table))


def localize_film(localizer: Localizer, job: Job, command: Command, show: Show = progress) -> bool:
    """Localise in one film, if its results are not there yet; whether they were written.

    The first Ctrl-C ends an endless source such as a camera and keeps its files.

    Args:
        localizer: the model and its options.
        job: the film.
        command: what to do.
        show: shows progress, as :func:`progress` does.
    """
    writing = command.writing
    source, written = job.source, result_files(job, writing)
    _refuse_long_name(job, written)
    made = _fingerprint(job, localizer, command)
    files, folder = [path for path in written if path is not None], written.table.parent
    if not command.recompute and _is_done(written, made):
        return False
    with ExitStack() as outer:
        reader = outer.enter_context(open_video(source, threads=command.threads, layout=_layout(localizer, writing)))
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
    return True


def _fingerprint(job: Job, localizer: Localizer, command: Command) -> str | None:
    settings = {**asdict(command.writing), **asdict(localizer.options), "device": command.device, "batch": None}
    segmenter = () if command.refine is None else segmenter_files(command.refine)
    try:
        return fingerprint(command.run, job.source, settings, segmenter)
    except OSError as error:
        raise UnreadableError(f"cannot read {error.filename or job.source.name}: {error.strerror}") from error


def _refuse_long_name(job: Job, written: Written) -> None:
    """Refuse a video whose result files, or the temporary files they are written to, would have too long names."""
    longest = source_path(written.table)
    try:
        longest.with_name("x" * TEMPORARY_PART + longest.name).exists()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise VideoError(
            f"cannot write the results of {job.source.name}: its name is too long for their names: rename the video"
        ) from error


def _is_done(written: Written, made: str | None) -> bool:
    files = [path for path in written if path is not None]
    done = made is not None and all(path.is_file() for path in files) and read_made(written.table) == made
    if done:
        say(f"{written.table} exists for the same video, model and settings: kept (--overwrite recomputes it)")
    return done


def _layout(localizer: Localizer, writing: Writing) -> FrameLayout:
    """Frames are resized where they are decoded; their images are needed only to draw on them or to refine masks."""
    return FrameLayout(localizer.card.size, images=writing.annotate or localizer.segmenter is not None)


def _process(localizer: Localizer, reader: VideoReader, written: Written, choice: FrameChoice, show: Show) -> None:
    """Write the localisation table and the annotated video."""
    source = reader.source
    with ExitStack() as stack:
        listed = stack.enter_context(
            LocalizationTable(written.table, _columns(localizer), picture_names(reader.pictures))
        )
        drawn = None
        if written.video is not None:
            from colocam.inference.sinks import AnnotatedVideo  # noqa: PLC0415 - a table alone needs no matplotlib

            drawn = stack.enter_context(AnnotatedVideo(written.video, reader.info))
        title = f"localizing {source.path.name if source.path else source.name}"
        advance = stack.enter_context(show(title, reader.estimate(choice), unit="frames"))
        stack.enter_context(nullcontext() if source.is_stored else graceful_stop())
        frames = _until_stopped(reader.frames(choice))
        found = stack.enter_context(
            closing(ahead(localizer.stream(frames, live=source.live), FRAMES_AHEAD, "localizer"))
        )
        shift: float | None = None
        for _, told in groupby(found, key=lambda one: one[0].index):
            (frame, *_), objects = zip(*told, strict=True)
            if shift is None:  # an annotated part of a video begins at 0; the clock of a camera does not
                shift = 0.0 if choice.from_the_start and not source.live else frame.pts
            for one in objects:
                listed.write(one)
            if drawn is not None:
                drawn.write(frame.image, *(replace(one, pts=one.pts - shift) for one in objects))
            advance()
        if shift is None:
            many = f"its {reader.count} frames" if reader.ended else "its frames"
            raise UnreadableError(f"{source.name} has no frame {choice}; {many} begin at second {reader.start:g}")


def _until_stopped(frames: Iterable[VideoFrame]) -> Iterator[VideoFrame]:
    for frame in frames:
        yield frame
        if stop_requested():
            return


def _columns(localizer: Localizer) -> list[str]:
    """The optional columns of the localisation table."""
    wanted = {
        "track": localizer.options.smooth != "none",
        "presence": True,
        "margin": not localizer.options.instances,
        "mask": localizer.options.masks or localizer.segmenter is not None,
        "refined": localizer.segmenter is not None,
    }
    return [name for name, there in wanted.items() if there]
