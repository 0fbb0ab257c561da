"""From videos to annotated videos and localisation tables."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from colocam.errors import ArgumentError, ColocamError
from colocam.inference.jobs import Job, find_jobs, fingerprint, refuse_overwriting, stored_videos
from colocam.inference.localizer import Localizer
from colocam.inference.result_files import ForeignFileError, publish_results, refuse_foreign
from colocam.inference.sinks import AnnotatedVideo
from colocam.inference.table import LocalizationTable
from colocam.segment.open_segmenter import segmenter_files
from colocam.temporal.cuts import WINDOW
from colocam.types import Image, VideoFrame
from colocam.utils.file_digests import MEMORY, FileDigests
from colocam.utils.files import explain_os_errors
from colocam.utils.interrupt import graceful_stop, stop_requested
from colocam.utils.locks import locked
from colocam.utils.prefetch import ahead
from colocam.utils.progress import progress, say
from colocam.utils.temporary import temporary_folder
from colocam.video.description import describe, picture_names, read_made, source_path
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import UnreadableError, VideoError, VideoInput
from colocam.video.reader import VideoInfo, VideoReader

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


def localize_file(
    run: str | Path,
    video: str | Path,
    out: str | Path,
    *,
    table: str = "csv",
    annotate: bool = True,
    choice: FrameChoice = ALL,
    format: str | None = None,  # noqa: A002 - FFmpeg's word
    device: str | None = None,
    refine: str | Path | None = None,
    overwrite: bool = False,
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> Written:
    """Write ``OUT/<video>.mp4`` with heat-map, boxes and labels, and ``OUT/<video>.<table>``, a row per object.

    ``OUT/<video>.video.json`` describes the video itself, for ``colocam export``.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        video: any file FFmpeg reads, a folder of images, ``-`` for the standard input, an address or a camera.
        out: folder for the results, created if it does not exist.
        table: ``csv`` or ``parquet``.
        annotate: whether to write the mp4.
        choice: which frames; all by default.
        format: FFmpeg's name of the input format; None: FFmpeg detects it.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        refine: a promptable segmenter, see :func:`colocam.segment.open_segmenter.load_segmenter`.
        overwrite: whether to replace files that this function did not write, or that were changed since.
        options: fields of :class:`colocam.inference.options.Options`.

    Raises:
        ColocamError: the video cannot be read, or a file that is not ours stands where a result must be written.
    """
    localizer = Localizer.load(Path(run), device, refine=refine, **options)
    jobs, writing = find_jobs([video], Path(out), format=format), Writing(table, annotate, choice)
    _refuse_long_name(jobs[0], _written(jobs[0], writing))
    refuse_overwriting(jobs[0], stored_videos(jobs), *_endings(writing))
    made = _fingerprint(Path(run), jobs[0], localizer, writing, device, refine, FileDigests())
    _localize(localizer, jobs[0], writing, made, recompute=True, overwrite=overwrite)
    return _written(jobs[0], writing)


def localize_videos(
    run: str | Path,
    videos: Sequence[str | Path],
    out: str | Path,
    writing: Writing | None = None,
    *,
    overwrite: bool = False,
    format: str | None = None,  # noqa: A002 - FFmpeg's word
    device: str | None = None,
    refine: str | Path | None = None,
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> Iterator[Written]:
    """:func:`localize_file` for several videos and for all videos in folders; yields the files of each.

    Results that exist for the same video, model and settings are kept, unless ``overwrite``; ``batch`` is no such
    setting, since results do not depend on it. A file that is not ours is replaced only with ``overwrite``. A video
    that cannot be read, or whose results would replace such a file, is skipped with a warning.

    Raises:
        ColocamError: at the end, if a video was skipped.
    """
    writing, run, out = writing or Writing(), Path(run), Path(out)
    localizer = Localizer.load(run, device, refine=refine, **options)
    jobs = find_jobs(videos, out, format=format)
    stored = stored_videos(jobs)
    skipped: list[ColocamError] = []
    digests = FileDigests(out / MEMORY)
    for job in jobs:
        try:
            _refuse_long_name(job, _written(job, writing))
            refuse_overwriting(job, stored, *_endings(writing))
            made = _fingerprint(run, job, localizer, writing, device, refine, digests)
            written = _localize(localizer, job, writing, made, recompute=overwrite, overwrite=overwrite)
            digests.save()
            if written:
                yield _written(job, writing)
        except (VideoError, ForeignFileError) as error:
            if len(jobs) == 1:
                raise
            say(f"warning: {error}")
            skipped.append(error)
    if skipped:
        what = "cannot be read" if all(isinstance(one, UnreadableError) for one in skipped) else "were left out"
        raise ColocamError(f"{len(skipped)} of {len(jobs)} videos {what}, see the warnings; the others are done")


def _endings(writing: Writing) -> tuple[str, ...]:
    return (*(["mp4"] if writing.annotate else []), writing.table, "video.json")


def _written(job: Job, writing: Writing) -> Written:
    return Written(job.file("mp4") if writing.annotate else None, job.file(writing.table))


def _fingerprint(
    run: Path,
    job: Job,
    localizer: Localizer,
    writing: Writing,
    device: str | None,
    refine: str | Path | None,
    digests: FileDigests,
) -> str | None:
    settings = {**asdict(writing), **asdict(localizer.options), "device": device, "batch": None}
    try:
        return fingerprint(run, job.source, settings, () if refine is None else segmenter_files(refine), digests)
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


def _localize(
    localizer: Localizer, job: Job, writing: Writing, made: str | None, *, recompute: bool, overwrite: bool
) -> bool:
    """Localise in one video, if its results are not there yet; whether they were written.

    The first Ctrl-C ends an endless source such as a camera and keeps its files.
    """
    source, written = job.source, _written(job, writing)
    files, folder = [path for path in written if path is not None], written.table.parent
    if not recompute and _is_done(written, made):
        return False
    with ExitStack() as outer:
        reader = outer.enter_context(VideoReader(source))
        with explain_os_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            outer.enter_context(locked(folder, job.target.name, wait=True))
            if not recompute and _is_done(written, made):  # by the command that held the lock
                return False
            refuse_foreign(files, overwrite=overwrite)
            stage = outer.enter_context(temporary_folder(folder))
        video = None if written.video is None else stage / written.video.name
        staged = Written(video, stage / written.table.name)
        _process(localizer, reader, staged, writing.choice)
        count = reader.count if reader.ended else max(reader.count, reader.total)
        described = describe(source.path or Path(source.stem), reader.info, count, reader.pictures)
        with explain_os_errors(folder):
            publish_results(stage, files, described, made)
    return True


def _process(localizer: Localizer, reader: VideoReader, written: Written, choice: FrameChoice) -> None:
    """Write the localisation table and the annotated video."""
    source = reader.source
    with ExitStack() as stack:
        listed = stack.enter_context(
            LocalizationTable(written.table, _columns(localizer), picture_names(reader.pictures))
        )
        drawn = None if written.video is None else stack.enter_context(AnnotatedVideo(written.video, reader.info))
        title = f"localizing {source.path.name if source.path else source.name}"
        advance = stack.enter_context(progress(title, reader.estimate(choice), unit="frames"))
        stack.enter_context(nullcontext() if source.is_stored else graceful_stop())
        frames = _until_stopped(reader.frames(choice))
        twice = drawn is not None and source.is_stored and _is_large(reader.info)
        stream = localizer.stream(frames, live=source.live, images=drawn is not None and not twice)
        found = stack.enter_context(closing(ahead(stream, FRAMES_AHEAD, "localizer")))
        decoded = stack.enter_context(closing(ahead(_frames_again(source, choice), 1, "drawing"))) if twice else None
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
            advance()
        if shift is None:
            many = f"its {reader.count} frames" if reader.ended else "its frames"
            raise UnreadableError(f"{source.name} has no frame {choice}; {many} begin at second {reader.start:g}")


def _is_large(info: VideoInfo) -> bool:
    """Whether frames that wait for their boxes would take too much memory."""
    return FRAMES_WAITING * info.width * info.height * 3 > MOST_WAITING


def _frames_again(source: VideoInput, choice: FrameChoice) -> Iterator[VideoFrame]:
    with VideoReader(source) as reader:
        yield from reader.frames(choice)


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
