"""From videos to annotated videos and localization tables: ``colocam localize``."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from colocam.config.options import DEFAULT, Options
from colocam.errors import ColocamError
from colocam.inference.engine import Model, open_pool
from colocam.inference.results import Tables, Writing, Written
from colocam.inference.task import LocalizeVideo, LostError, Outcome, Worker, do_all, look_at
from colocam.inference.videos import Video, find_videos, refuse_overwriting, stored_videos
from colocam.labels.table_files import ForeignFileError
from colocam.temporal.presence import absent_below
from colocam.types import Overlay
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.locks import clear_dead
from colocam.utils.progress import listed, progress, say
from colocam.video.description import read_made
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import UnreadableError, VideoError

VIDEOS_OF_A_WORKER, BYTES_OF_A_WORKER = 4, 2**22
"""Least number or size of videos for which another process, which takes about two seconds to start, is worth it."""
BYTES_OF_A_DRAWER = 2**19
"""The same where videos are drawn and encoded, which takes several times as long."""

__all__ = ["Writing", "Written", "localize_file", "localize_videos"]


def localize_file(
    run: str | Path,
    video: str | Path,
    out: str | Path,
    *,
    table: str = "csv",
    annotate: bool = True,
    overlay: Overlay = "contour",
    choice: FrameChoice = ALL,
    format: str | None = None,  # noqa: A002 - FFmpeg's word
    overwrite: bool = False,
    options: Options = DEFAULT,
) -> Written:
    """Write ``OUT/<video>.mp4`` with boxes and labels, and ``OUT/<video>.<table>``, a row per object.

    ``OUT/<video>.video.json`` describes the video itself, for ``colocam export``.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        video: any file FFmpeg reads, a folder of images, ``-`` for the standard input, an address or a camera.
        out: folder for the results, created if it does not exist.
        table: ``csv`` or ``parquet``.
        annotate: whether to write the mp4.
        overlay: what the mp4 shows beside the boxes, see :func:`colocam.video.drawing.draw_objects`.
        choice: which frames; all by default.
        format: FFmpeg's name of the input format; None: FFmpeg detects it.
        overwrite: whether to replace files that this function did not write, or that were changed since.
        options: how to run the model.

    Raises:
        ColocamError: the video cannot be read, or a file that is not ours stands where a result must be written.
    """
    out = Path(out)
    writing = Writing(table, annotate, choice, overlay)
    (named,) = find_videos([video], out, format=format)
    refuse_overwriting(writing.all_files(named, out), stored_videos([named]))
    model = Model(Path(run), options)
    (localizer, *_) = model.load()
    LocalizeVideo(named, Tables(out, writing, overwrite=overwrite), model.key(choice), choice)(Worker(localizer))
    return writing.files(named, out)


def localize_videos(
    run: str | Path,
    videos: Sequence[str | Path],
    out: str | Path,
    writing: Writing | None = None,
    *,
    overwrite: bool = False,
    format: str | None = None,  # noqa: A002 - FFmpeg's word
    workers: int | None = 1,
    options: Options = DEFAULT,
) -> Iterator[Written]:
    """:func:`localize_file` for several videos and for all videos in folders; yields the files of each.

    Results that exist for the same video, model and settings are kept, unless ``overwrite``; ``batch`` is no such
    setting, since results do not depend on it. A file that is not ours is replaced only with ``overwrite``. A video
    that cannot be read, or whose results would replace such a file, is skipped with a warning.

    With several workers the videos are done at the same time, around one network per GPU, and in any order; the results
    are the same. A segmenter or a source that is not stored needs one process.

    Args:
        run: as for :func:`localize_file`, like those that are not listed here.
        videos: videos and folders.
        out: folder for the results.
        writing: what to read and write.
        overwrite: whether to recompute results and replace foreign files.
        format: FFmpeg's name of the input format.
        workers: processes that read videos and write results; 1: all in this process; None: one per core, half as many
            more with a GPU, but no more than the videos keep busy for longer than a process takes to start.
        options: how to run the model.

    Raises:
        ColocamError: at the end, if a video was skipped.
    """
    writing = writing or Writing()
    out = Path(out)
    named = find_videos(videos, out, format=format)
    refused = _refused(named, writing, out)
    skipped = [_left_out(error, len(named)) for error in refused.values()]
    model = Model(Path(run), options)
    sink = Tables(out, writing, recompute=overwrite, overwrite=overwrite)
    tasks = _to_do(model, [video for video in named if video not in refused], sink)
    waiting = [task.video for task in tasks]
    busy = min(len(waiting), _kept_busy(waiting, writing) if workers is None else len(waiting))
    if options.refine is not None or any(video.stored is None for video in waiting):
        busy = 1
    done = frames = empty = 0
    in_doubt: list[str] = []
    with ExitStack() as stack:
        shown = busy > 1 and workers != 1
        for folder in {(out / video.name).parent for video in waiting} if shown else ():
            stack.callback(clear_dead, folder, again=True)  # what a worker that was ended left
        title = f"localizing {len(waiting)} videos"
        advance = stack.enter_context(progress(title, 0, unit="frames")) if shown else _unseen
        outcomes: Iterable[tuple[LocalizeVideo, Outcome]] = ()
        if tasks:  # the model takes seconds to load
            pool = stack.enter_context(open_pool(model, workers, busy, digests=out / MEMORY, passed=advance))
            outcomes = do_all(pool, tasks)
        for task, outcome in outcomes:
            done += 1
            advance(0, f"{done} of {len(waiting)} videos done")
            if isinstance(outcome.error, LostError):
                text = f"{task.name} was left out: {outcome.error}, {outcome.attempts} times"
                skipped.append(_left_out(VideoError(text), len(named)))
            elif outcome.error is not None:
                skipped.append(_left_out(outcome.error, len(named)))
            elif outcome.result["written"]:
                frames += outcome.result["frames"]
                empty += outcome.result["empty"]
                in_doubt += [task.name] * outcome.result["in_doubt"]
                yield writing.files(task.video, out)
    if in_doubt:
        say(f"the class is in doubt in all frames of {listed(in_doubt)}: look there first, or give it with --tag")
    if frames:
        bound = absent_below(options.presence)
        what = f"--presence {bound} hides their boxes" if options.presence is None else "their boxes are hidden"
        say(f"{empty} of {frames} frames look empty (presence below {bound}){f': {what}' if empty else ''}")
    if skipped:
        what = "cannot be read" if all(isinstance(error, UnreadableError) for error in skipped) else "were left out"
        raise ColocamError(f"{len(skipped)} of {len(named)} videos {what}, see the warnings; the others are done")


def _to_do(model: Model, videos: Sequence[Video], sink: Tables) -> deque[LocalizeVideo]:
    """The tasks of a command, without those whose results are there already, as far as a quick look tells."""
    choice = sink.writing.choice
    try:
        key = model.key(choice)
    except OSError:
        model.load()  # says what is wrong with the model
        raise
    tasks = [LocalizeVideo(video, sink, key, choice) for video in videos]
    looks = look_at(tasks, FileDigests(sink.out / MEMORY))
    to_do = deque(task for task, look in zip(tasks, looks, strict=True) if look.result is None)
    tables = [sink.writing.files(task.video, sink.out).table for task in to_do]
    again = sum(table.is_file() and read_made(table) is not None for table in tables)
    if again and not sink.recompute:
        what = f"{again} tables were" if again > 1 else "a table was"
        say(f"{what} made from a different video, with different settings or by another version: computing again")
    return to_do


def _unseen(*_: object) -> None:
    """Each video shows its own progress."""


def _left_out(error: ColocamError, count: int) -> ColocamError:
    """Warn of a video that is left out; the only one ends the command."""
    if count == 1:
        raise error
    say(f"warning: {error}")
    return error


def _kept_busy(videos: Sequence[Video], writing: Writing) -> int:
    """Workers that videos keep busy for longer than a process takes to start."""
    sizes = [path.stat().st_size for video in videos if (path := video.stored) is not None]
    least = BYTES_OF_A_DRAWER if writing.annotate else BYTES_OF_A_WORKER
    return max(1, len(videos) // VIDEOS_OF_A_WORKER, sum(sizes) // least)


def _refused(videos: Sequence[Video], writing: Writing, out: Path) -> dict[Video, ForeignFileError]:
    """Videos whose results would be written over videos of this command, and why they are left out."""
    stored = stored_videos(videos)
    refused = {}
    for video in videos:
        try:
            refuse_overwriting(writing.all_files(video, out), stored)
        except ForeignFileError as error:
            refused[video] = error
    return refused
