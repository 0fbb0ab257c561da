"""From videos to annotated videos and localization tables: ``colocam localize``."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from colocam.errors import ColocamError
from colocam.inference.engine import Model, Outcome, do_all, open_pool
from colocam.inference.options import DEFAULT, Options
from colocam.inference.results import WriteResults, Writing, Written
from colocam.inference.videos import Job, find_jobs, refuse_overwriting, stored_videos
from colocam.inference.worker import LostError, Worker
from colocam.labels.table_files import ForeignFileError
from colocam.temporal.presence import absent_below
from colocam.types import Overlay
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.locks import clear_dead
from colocam.utils.progress import progress, say
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
    jobs, writing = find_jobs([video], Path(out), format=format), Writing(table, annotate, choice, overlay)
    refuse_overwriting(jobs[0], stored_videos(jobs), *writing.endings)
    model = Model(Path(run), options)
    (localizer, *_) = model.load()
    WriteResults(jobs[0], writing, model.key(choice), overwrite=overwrite)(Worker(localizer))
    return writing.files(jobs[0])


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
    writing, out = writing or Writing(), Path(out)
    found = find_jobs(videos, out, format=format)
    refused = _refused(found, writing)
    skipped = [_left_out(error, len(found)) for error in refused.values()]
    model = Model(Path(run), options)
    tasks = _to_do(model, [job for job in found if job not in refused], writing, out, overwrite=overwrite)
    jobs = [task.job for task in tasks]
    stored = all(job.source.is_stored for job in jobs)
    busy = min(len(jobs), _kept_busy(jobs, writing) if workers is None else len(jobs))
    busy, done, frames, empty = (busy if stored and options.refine is None else 1), 0, 0, 0
    with ExitStack() as stack:
        shown = busy > 1 and workers != 1
        for folder in {job.target.parent for job in jobs} if shown else ():
            stack.callback(clear_dead, folder, again=True)  # what a worker that was ended left
        title = f"localizing in {len(jobs)} videos"
        advance = stack.enter_context(progress(title, 0, unit="frames")) if shown else _unseen
        outcomes: Iterable[tuple[WriteResults, Outcome]] = ()
        if tasks:  # the model takes seconds to load
            pool = stack.enter_context(open_pool(model, workers, busy, digests=out / MEMORY, passed=advance))
            outcomes = do_all(pool, tasks)
        for task, outcome in outcomes:
            done += 1
            advance(0, f"{done} of {len(jobs)} videos done")
            if isinstance(outcome.error, LostError):
                text = f"{task.name} was left out: {outcome.error}, {outcome.attempts} times"
                skipped.append(_left_out(VideoError(text), len(found)))
            elif outcome.error is not None:
                skipped.append(_left_out(outcome.error, len(found)))
            elif outcome.result["written"]:
                frames, empty = frames + outcome.result["frames"], empty + outcome.result["empty"]
                yield writing.files(task.job)
    if frames:
        asked, bound = options.presence, absent_below(options.presence)
        what = f"--presence {bound} hides their boxes" if asked is None else "their boxes are hidden"
        say(f"{empty} of {frames} frames look empty (presence below {bound}){f': {what}' if empty else ''}")
    if skipped:
        what = "cannot be read" if all(isinstance(one, UnreadableError) for one in skipped) else "were left out"
        raise ColocamError(f"{len(skipped)} of {len(found)} videos {what}, see the warnings; the others are done")


def _to_do(model: Model, jobs: Sequence[Job], writing: Writing, out: Path, *, overwrite: bool) -> "deque[WriteResults]":
    """The tasks of a command, without those whose results are there already, as far as a quick look tells."""
    try:
        key = model.key(writing.choice)
    except OSError:
        model.load()  # says what is wrong with the model
        raise
    digests = FileDigests(out / MEMORY)
    tasks = (WriteResults(job, writing, key, recompute=overwrite, overwrite=overwrite) for job in jobs)
    return deque(task for task in tasks if not task.is_done(digests))


def _unseen(*_: object) -> None:
    """Each video shows its own progress."""


def _left_out(error: ColocamError, count: int) -> ColocamError:
    """Warn of a video that is left out; the only one ends the command."""
    if count == 1:
        raise error
    say(f"warning: {error}")
    return error


def _kept_busy(jobs: Sequence[Job], writing: Writing) -> int:
    """Workers that videos keep busy for longer than a process takes to start."""
    sizes = [job.source.path.stat().st_size for job in jobs if job.source.path is not None and job.source.is_stored]
    least = BYTES_OF_A_DRAWER if writing.annotate else BYTES_OF_A_WORKER
    return max(1, len(jobs) // VIDEOS_OF_A_WORKER, sum(sizes) // least)


def _refused(jobs: Sequence[Job], writing: Writing) -> dict[Job, ForeignFileError]:
    """Videos whose results would be written over videos of this command, and why they are left out."""
    stored, refused = stored_videos(jobs), {}
    for job in jobs:
        try:
            refuse_overwriting(job, stored, *writing.endings)
        except ForeignFileError as error:
            refused[job] = error
    return refused
