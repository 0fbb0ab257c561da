"""The engine: tasks on many videos, done by workers of one kind around the networks of this machine.

    videos ─► tasks ─► do_all ─► a pool: Here, Workers (processes), or RayWorkers (machines) ─► results

What differs between ``localize`` and ``label`` is where videos come from and where rows go: the sink of the task. A
video is done where the sink has results with its key, which one function makes (:meth:`LocalizeVideo.key`).
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import entry_points
from math import inf
from pathlib import Path
from queue import Queue
from typing import NamedTuple, Protocol, TypeVar

from colocam.boxes.candidates import find_chooser
from colocam.inference.localizer import Localizer
from colocam.inference.options import DEFAULT, Options
from colocam.inference.passes import Passes
from colocam.inference.videos import model_key
from colocam.inference.worker import LocalizeVideo, Look, LostError, Result, Show, Task, Worker, as_known
from colocam.inference.workers import Workers
from colocam.labels.table_files import ForeignFileError
from colocam.segment import segmenter_files
from colocam.utils.child_processes import CAN_START
from colocam.utils.device import cores, without_collections
from colocam.utils.digests import FileDigests
from colocam.utils.extensions import GROUP, load_extensions, named_extensions
from colocam.utils.gpu_start import start_gpu
from colocam.utils.progress import progress, say, take
from colocam.video.fence import start_decoder
from colocam.video.frame_choice import FrameChoice
from colocam.video.input import DecoderLostError, VideoError

T = TypeVar("T", bound=Task)


AGAIN = (LostError, DecoderLostError)
"""Errors after which another attempt may succeed."""
LOOKS = 8
"""Threads that look for results: a network file system answers many questions at once."""


@dataclass(frozen=True)
class Model:
    """The model of a command, and all that changes its results; it can be pickled.

    Attributes:
        run: run folder of a trained model, or an ONNX file made from it.
        options: how to run it.
        extensions: that workers load, see :func:`colocam.utils.extensions.load_extensions`.
    """

    run: Path
    options: Options = DEFAULT
    extensions: Sequence[str] = field(default_factory=named_extensions)

    def key(self, choice: FrameChoice) -> str:
        """Digest of the content of the model and of what else changes results."""
        load_extensions(self.extensions)  # which may have the chooser
        if self.options.chooser is not None:
            find_chooser(self.options.chooser)
        settings = {**self.options.settings(), "choice": asdict(choice)}
        refine = self.options.refine
        return model_key(self.run, settings, () if refine is None else segmenter_files(refine))

    def load(self) -> list[Localizer]:
        """The model on the device, or, where none is named, on each GPU."""
        options = self.options
        if options.device != "cpu" and not self._is_onnx:
            start_gpu(options.device)
        with without_collections():
            load_extensions(self.extensions)
            devices = self.devices if options.refine is None else self.devices[:1]
            return [Localizer.open(self.run, replace(options, device=device)) for device in devices]

    @property
    def _is_onnx(self) -> bool:
        return self.run.suffix.lower() == ".onnx" and not self.run.is_dir()

    @cached_property
    def devices(self) -> list[str | None]:
        """Names of the devices that share the work."""
        named = self.options.device
        if named not in {None, "cuda"} or self._is_onnx:
            return [named]
        try:
            import torch  # noqa: PLC0415 - an ONNX file needs no torch
        except ModuleNotFoundError:  # whoever opens the model says so
            return [named]
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())] or [named]


class Pool(Protocol):
    """What does tasks."""

    @property
    def places(self) -> int:
        """Tasks that are done at the same time."""
        ...

    def submit(self, task: Task) -> "Future[Result]":
        """Do a task; the future raises what it raised, or a :class:`LostError`."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


class Outcome(NamedTuple):
    """What came of a task, after some attempts: its result, or why its video is left out."""

    result: Result
    error: VideoError | ForeignFileError | None
    attempts: int


def do_all(pool: Pool, tasks: "deque[T]", retries: int = 1) -> "Generator[tuple[T, Outcome], None, None]":
    """Do tasks in any order; yields each with what came of it.

    Args:
        pool: does them.
        tasks: taken from the left; more may be added meanwhile.
        retries: further attempts for a task that was lost.

    Raises:
        ColocamError: an error that concerns all videos.
    """
    done: Queue[tuple[T, Future[Result]]] = Queue()
    attempts: Counter[T] = Counter()
    running = 0
    while tasks or running:
        while tasks and running < pool.places + 1:  # one more waits, so that no worker does
            task = tasks.popleft()
            attempts[task] += 1
            running += 1
            pool.submit(task).add_done_callback(lambda future, task=task: done.put((task, future)))  # type: ignore[misc]
        task, future = take(done)
        running -= 1
        try:
            outcome = Outcome(future.result(), None, attempts[task])
        except (VideoError, ForeignFileError) as error:
            if isinstance(error, AGAIN) and attempts[task] <= retries:
                tasks.append(task)
                continue
            outcome = Outcome({}, error, attempts[task])
        yield task, outcome


def look_at(tasks: "Sequence[LocalizeVideo]", digests: FileDigests) -> Iterator[Look]:
    """A quick look at each video, in order: whether it is done."""
    with ThreadPoolExecutor(LOOKS, "looks") as pool:
        batches = (tasks[at : at + 256] for at in range(0, len(tasks), 256))
        for looks in pool.map(lambda batch: [task.look(digests) for task in batch], batches):
            yield from looks


class Here:
    """Does each task at once in the thread that submits it: a single video, a camera, a segmenter."""

    places = 0

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def submit(self, task: Task) -> "Future[Result]":
        """Do a task."""
        future: Future[Result] = Future()
        try:
            future.set_result(task(self._worker))
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(as_known(error))
        return future

    def close(self) -> None:
        """Nothing is under way."""


@contextmanager
def open_pool(
    model: Model,
    workers: int | None,
    busy: int,
    *,
    apart: bool = False,
    digests: Path | None = None,
    passed: Callable[[int], object] = int,
    limit: float = inf,
    show: Show = progress,
) -> Iterator[Pool]:
    """Load a model, and open what does tasks with it on this machine.

    Args:
        model: the model.
        workers: number of processes; None: one per core, half as many more with a GPU, but at most ``busy``.
        busy: how many have something to do.
        apart: whether a process of its own does the tasks even if it is the only one.
        digests: file that remembers digests of videos; None: none does.
        passed: called with the number of frames that passed a network in worker processes.
        limit: seconds without progress after which a worker is replaced.
        show: shows progress where this process does the tasks.
    """
    count = min(cores(), busy) if workers is None else min(workers, busy)
    several = (count > 1 or apart) and model.options.refine is None and CAN_START
    if (workers or 1) > 1 and not CAN_START:
        say("note: this system cannot share the work among processes: one does all")
    started = Workers(count, passed, limit) if several else None  # they start while the model is loaded
    try:
        if started is None:
            start_decoder()
        localizers = model.load()
        first = localizers[0]
        if started is not None and _is_known_elsewhere(first, model):
            started.open(localizers, model.extensions, digests, count if workers else min(most_workers(first), busy))
            yield started
        else:
            yield Here(Worker(first, FileDigests(digests), show=show))
    finally:
        if started is not None:
            started.close()


def _is_known_elsewhere(localizer: Localizer, model: Model) -> bool:
    """Whether workers know the chooser, which a script may have registered in this process alone."""
    shipped = localizer.chooser.candidates.__module__.startswith("colocam.")
    return shipped or bool(model.extensions) or bool(entry_points(group=GROUP))


def most_workers(localizer: Localizer) -> int:
    """Workers that keep all cores busy: half as many more than cores, if they wait for the passes of a GPU."""
    return cores() * 3 // 2 if isinstance(localizer.network, Passes) and localizer.network.on_gpu else cores()
