"""Label the videos of a catalogue: find what is to do, let workers do it, and list the results: ``colocam label``.

What is done is known from the parts in storage alone, see :mod:`colocam.inference.parts`.
"""

import random
import re
import socket
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - without this extra the command ends before its work begins

from colocam.config.options import DEFAULT, Options
from colocam.errors import ArgumentError, ColocamError
from colocam.inference.engine import Model, open_pool
from colocam.inference.parts import LONG, Parts
from colocam.inference.task import FrameRange, LocalizeVideo, Outcome, Pool, Result, do_all, look_at
from colocam.inference.videos import Shard, Video, read_videos
from colocam.integrations.ray_workers import RayWorkers
from colocam.labels.label_folder import Failures, Labeled, write_video_list
from colocam.utils.digests import FileDigests
from colocam.utils.files import explain_os_errors, stored, utf8
from colocam.utils.progress import Advance, progress, say
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import DecoderEndedError, UnreadableError


@dataclass(frozen=True, slots=True)
class Execution:
    """How a command is executed; none of it changes results.

    Attributes:
        shard: which videos.
        workers: number of worker processes, with Ray on each machine; None: as many as suit the machine.
        ray: address of a Ray cluster whose machines do the work; None: this machine.
        limit: seconds without progress after which a video is given up.
        retries: further attempts for a video that was given up, or whose worker died.
        retry_failed: whether to try videos again that an earlier command set aside.
    """

    shard: Shard = field(default_factory=Shard)
    workers: int | None = None
    ray: str | None = None
    limit: float = 300.0
    retries: int = 3
    retry_failed: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ArgumentError("workers", f"must be 1 or more, got {self.workers}")
        if not self.limit > 0:
            raise ArgumentError("limit", f"must be more than 0 seconds, got {self.limit:g}")
        if self.retries < 0:
            raise ArgumentError("retries", f"must be 0 or more, got {self.retries}")


def label_videos(
    run: str | Path,
    catalogue: str | Path,
    out: str | Path,
    execution: Execution | None = None,
    *,
    choice: FrameChoice = ALL,
    long: int = LONG,
    options: Options = DEFAULT,
) -> None:
    """Write ``OUT/parts/ab/<key>.parquet``, a localization table, for each video of a catalogue.

    ``OUT/videos.parquet`` lists the parts by video, ``OUT/failures.parquet`` the videos that could not be labeled. What
    is there already is not done again, so that the same command, on this or another machine, continues.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        catalogue: see :func:`colocam.inference.videos.read_videos`.
        out: folder of the labels; several commands may use it at the same time.
        execution: how to do it.
        choice: which frames of each video.
        long: frames of a video that several workers share.
        options: how to run the model. A tag is that of all videos; None: that of the catalogue, or the one that the
            classifier finds.

    Raises:
        ColocamError: at the end, if videos were set aside; at once, if no video can be labeled.
    """
    execution = execution or Execution()
    run = Path(run).absolute()
    labels = Path(out).absolute()
    if not stored(run).exists():
        raise ColocamError(f"no model at {run}: give a run folder of 'colocam train', or an ONNX file made from it")
    catalogued = _tagged(read_videos(Path(catalogue).absolute(), labels), options.tag)
    videos = [video for video in catalogued if execution.shard.has(video)]
    _prepare(labels)
    model = Model(run, replace(options, tag=None))
    corpus = _Corpus(model, labels, choice, videos, execution, long)
    try:
        if corpus.waiting:
            corpus.label()
    finally:
        corpus.write_lists()
    if corpus.set_aside:
        raise ColocamError(
            f"{len(corpus.set_aside)} of {len(videos)} videos could not be labeled, see "
            f"{labels / 'failures.parquet'}; the others are done (add --retry-failed to try them again)"
        )


class _Corpus:
    """The videos of one command: those that are labeled, those that are set aside, and those that wait."""

    def __init__(
        self,
        model: Model,
        labels: Path,
        choice: FrameChoice,
        videos: Sequence[Video],
        execution: Execution,
        long: int,
    ) -> None:
        self._model = model
        self._labels = labels
        self._execution = execution
        key = model.key(choice)
        sink = Parts(labels, long)
        self._tasks = [LocalizeVideo(video, sink, key, choice) for video in videos]
        host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
        self._memory = labels / "digests" / f"{host}-{execution.shard}.jsonl"
        self._digests = FileDigests(self._memory, self._memory.parent.glob("*.jsonl"))
        self._failures = Failures(labels)
        self._open_ranges: Counter[str] = Counter()  # by video
        self.done: dict[str, Labeled] = {}
        self.set_aside: set[str] = set()
        self.waiting: list[LocalizeVideo] = []
        for task, look in zip(self._tasks, look_at(self._tasks, self._digests), strict=True):
            name = task.video.name
            failure = self._failures.by_video.get(utf8(name)) if self._failures.by_video else None
            if look.result is not None and look.key:
                self.done[name] = Labeled(look.key, content=look.content)
                self._failures.remove(name)
            elif failure is not None and failure.key == look.key and not execution.retry_failed:
                self.set_aside.add(name)
            else:
                self.waiting.append(task)
        say(
            f"{len(videos)} videos: {len(self.done)} are labeled, {len(self.set_aside)} are set aside, "
            f"{len(self.waiting)} are left to label"
        )

    def label(self) -> None:
        """Label the videos that wait."""
        # Commands that label the same videos at the same time begin at different ones.
        first = random.SystemRandom().randrange(len(self.waiting))
        tasks = deque([*self.waiting[first:], *self.waiting[:first]])
        with progress("labeling", 0, unit="frames") as advance, self._pool(advance) as pool:
            for task, outcome in do_all(pool, tasks, self._execution.retries):
                name = task.video.name
                if outcome.error is not None:
                    self._fail(task, outcome, tasks)
                elif name not in self.set_aside:
                    self._finish(task, outcome.result, tasks)
                advance(0, self._note)

    @property
    def _note(self) -> str:
        return f"{len(self.done)} of {len(self._tasks)} videos"

    def _pool(self, advance: Advance) -> AbstractContextManager[Pool]:
        def passed(frames: int) -> None:
            advance(frames, self._note)

        limit = self._execution.limit
        workers = self._execution.workers
        busy = len(self.waiting)
        if self._execution.ray is not None:
            return closing(RayWorkers(self._model, self._execution.ray, workers, self._memory, passed, limit))
        return open_pool(
            self._model,
            workers,
            busy,
            apart=True,
            digests=self._memory,
            passed=passed,
            limit=limit,
            show=lambda *_, **__: nullcontext(advance),
        )

    def _finish(self, task: LocalizeVideo, result: Result, tasks: "deque[LocalizeVideo]") -> None:
        """A part is in storage, or a range of it, or the video is long and has to be divided."""
        name = task.video.name
        if "ranges" in result:
            self._open_ranges[name] = len(result["ranges"])
            tasks.extendleft(replace(task, range=FrameRange(*ends)) for ends in reversed(result["ranges"]))
        elif task.range is None:
            self.done[name] = Labeled(result["key"], result.get("frames", 0), result.get("rows", 0), result["content"])
            self._failures.remove(name)
        else:
            self._open_ranges[name] -= 1
            if not self._open_ranges[name]:
                tasks.appendleft(replace(task, range=None))

    def _fail(self, task: LocalizeVideo, outcome: Outcome, tasks: "deque[LocalizeVideo]") -> None:
        """Set a video aside, with what is left of its ranges."""
        if (name := task.video.name) in self.set_aside:
            return
        self.set_aside.add(name)
        for other in [waiting for waiting in tasks if waiting.video.name == name]:
            tasks.remove(other)
        # What the machine lacked is no fault of the video: no key, so that the next command tries it again.
        ended = isinstance(outcome.error, DecoderEndedError)
        try:
            key = "" if ended else task.key(task.video.digest(self._digests))
        except UnreadableError:
            key = ""
        say(f"warning: {task.name}: {outcome.error} ({outcome.attempts} attempts)")
        self._failures.add(name, key, str(outcome.error), outcome.attempts)

    def write_lists(self) -> None:
        """Write ``videos.parquet`` and ``failures.parquet``."""
        copies = write_video_list(self._labels, self.done, self.set_aside)
        if copies:
            copy, name = next(iter(copies.items()))
            others = f", and {len(copies) - 1} more are copies" if len(copies) > 1 else ""
            say(f"{copy} is a copy of {name}, so it is labeled once{others}")
        self._failures.write_table()


def _tagged(videos: list[Video], tag: str | None) -> list[Video]:
    if tag is None:
        return videos
    for video in videos:
        if video.tag is not None:
            raise ArgumentError("tag", f"cannot be used: the catalogue gives {video.name} the tag {video.tag}")
    return [replace(video, tag=tag) for video in videos]


def _prepare(labels: Path) -> None:
    with explain_os_errors(labels):
        # one listing: another command may be making these folders, parts first
        found = {path.name for path in labels.iterdir()} if labels.is_dir() else set()
        if found and "parts" not in found:
            raise ColocamError(f"{labels} is not empty and contains no labels: choose another folder")
        for name in ("parts", "digests", "failures"):
            (labels / name).mkdir(parents=True, exist_ok=True)
