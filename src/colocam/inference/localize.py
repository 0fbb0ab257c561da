"""From videos to annotated videos and localisation tables."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError
from colocam.inference.film import Command, Writing, Written, endings, localize_film, result_files
from colocam.inference.film_pool import Outcome, localize_films, most_workers, start_workers
from colocam.inference.jobs import Job, find_jobs, refuse_overwriting, stored_videos
from colocam.inference.localizer import Localizer
from colocam.labels.table_files import ForeignFileError
from colocam.utils.child_processes import ChildProcess
from colocam.utils.device import cores
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.progress import say
from colocam.video.fence import start_decoder
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import UnreadableError, VideoError

FILMS_OF_A_WORKER, BYTES_OF_A_WORKER = 4, 2**22
"""Least number or size of films for which another process, which takes about two seconds to start, is worth it."""

__all__ = ["Writing", "Written", "localize_file", "localize_videos"]


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
        refine: a promptable segmenter, see :func:`colocam.segment.load_segmenter`.
        overwrite: whether to replace files that this function did not write, or that were changed since.
        options: fields of :class:`colocam.inference.options.Options`.

    Raises:
        ColocamError: the video cannot be read, or a file that is not ours stands where a result must be written.
    """
    localizer = Localizer.load(Path(run), device, refine=refine, **options)
    jobs, writing = find_jobs([video], Path(out), format=format), Writing(table, annotate, choice)
    refuse_overwriting(jobs[0], stored_videos(jobs), *endings(writing))
    command = Command(Path(run), writing, recompute=True, overwrite=overwrite, device=device, refine=refine)
    localize_film(localizer, jobs[0], command, FileDigests())
    return result_files(jobs[0], writing)


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
    workers: int | None = 1,
    prepare: str = "",
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> Iterator[Written]:
    """:func:`localize_file` for several videos and for all videos in folders; yields the files of each.

    Results that exist for the same video, model and settings are kept, unless ``overwrite``; ``batch`` is no such
    setting, since results do not depend on it. A file that is not ours is replaced only with ``overwrite``. A video
    that cannot be read, or whose results would replace such a file, is skipped with a warning.

    With several workers the films are done at the same time, around one network, and in any order; the results are the
    same to the last byte. A segmenter or a source that is not stored needs one process.

    Args:
        run: as for :func:`localize_file`, like those that are not listed here.
        videos: videos and folders.
        out: folder for the results.
        writing: what to read and write.
        overwrite: whether to recompute results and replace foreign files.
        format: FFmpeg's name of the input format.
        device: ``cpu`` or ``cuda``.
        refine: a promptable segmenter.
        workers: processes that read films and write results; 1: all in this process; None: one per core, half as many
            more with a GPU, but no more than the films keep busy for longer than a process takes to start.
        prepare: ``module:function`` that each worker calls first, e.g. to register a chooser.
        options: fields of :class:`colocam.inference.options.Options`.

    Raises:
        ColocamError: at the end, if a video was skipped.
    """
    writing, run, out = writing or Writing(), Path(run), Path(out)
    found = find_jobs(videos, out, format=format)
    refused = _refused(found, writing)
    jobs = [job for job in found if job not in refused]
    command = Command(
        run, writing, recompute=overwrite, overwrite=overwrite, device=device, refine=refine, digests=out / MEMORY
    )
    busy = min(_kept_busy(jobs), len(jobs))
    first = min(cores(), busy) if workers is None else min(workers, len(jobs))
    with ExitStack() as stack:

        def start(count: int, others: int = 0) -> list[ChildProcess]:
            added = start_workers(count, others)
            for worker in added:
                stack.callback(worker.kill)
            return added

        # Processes start while the model is loaded.
        several = first > 1 and refine is None and all(job.source.is_stored for job in jobs)
        started = start(first) if several else []
        if not several:
            start_decoder()
        localizer = Localizer.load(run, device, refine=refine, **options)
        if started and workers is None:
            more = min(most_workers(localizer), busy) - first
            started += start(more, first)
        outcomes: Generator[tuple[Job, Outcome], None, None]
        if started and (prepare or localizer.chooser.candidates.__module__.startswith("colocam.")):
            outcomes = localize_films(localizer, jobs, command, started, prepare)
        else:  # also where workers would not know a chooser that this process registered
            digests = FileDigests(command.digests)
            outcomes = ((job, _outcome(localizer, job, command, digests)) for job in jobs)
        yield from _report(chain(refused.items(), stack.enter_context(closing(outcomes))), len(found), writing)


def _report(outcomes: Iterable[tuple[Job, Outcome]], count: int, writing: Writing) -> Iterator[Written]:
    """The files of each film that was done; warn of those that were left out."""
    skipped: list[ColocamError] = []
    for job, outcome in outcomes:
        if isinstance(outcome, ColocamError):
            if count == 1:
                raise outcome
            say(f"warning: {outcome}")
            skipped.append(outcome)
        elif outcome:
            yield result_files(job, writing)
    if skipped:
        what = "cannot be read" if all(isinstance(one, UnreadableError) for one in skipped) else "were left out"
        raise ColocamError(f"{len(skipped)} of {count} videos {what}, see the warnings; the others are done")


def _kept_busy(jobs: Sequence[Job]) -> int:
    """Workers that films keep busy for longer than a process takes to start."""
    sizes = [job.source.path.stat().st_size for job in jobs if job.source.path is not None and job.source.is_stored]
    return max(1, len(jobs) // FILMS_OF_A_WORKER, sum(sizes) // BYTES_OF_A_WORKER)


def _refused(jobs: Sequence[Job], writing: Writing) -> dict[Job, ForeignFileError]:
    """Films whose results would be written over films of this command, and why they are left out."""
    stored, refused = stored_videos(jobs), {}
    for job in jobs:
        try:
            refuse_overwriting(job, stored, *endings(writing))
        except ForeignFileError as error:
            refused[job] = error
    return refused


def _outcome(localizer: Localizer, job: Job, command: Command, digests: FileDigests) -> Outcome:
    """Whether results were written, or why the film is left out."""
    try:
        return localize_film(localizer, job, command, digests)
    except (VideoError, ForeignFileError) as error:
        return error
