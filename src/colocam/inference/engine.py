"""The engine: tasks on many videos, done by workers of one kind around the networks of this machine.

    videos ─► tasks ─► do_all ─► a pool: Here, Workers (processes), or RayWorkers (machines) ─► results

What differs between ``localize``, ``label`` and the page is only where videos come from and where rows go: the task.
"""

import base64
import errno
import os
import pickle
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from queue import Queue, SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

from colocam.config.card import Card
from colocam.errors import ColocamError, InterruptedRunError, first_line
from colocam.inference.localizer import Localizer, open_network
from colocam.inference.network import OutputShape
from colocam.inference.options import make_options
from colocam.inference.passes import Passes
from colocam.inference.remote import ServedWorker
from colocam.inference.videos import model_key
from colocam.inference.worker import Result, Show, Task, Worker
from colocam.labels.table_files import ForeignFileError
from colocam.segment import load_segmenter, segmenter_files
from colocam.utils.child_processes import ChildProcess, Message
from colocam.utils.device import cores
from colocam.utils.digests import FileDigests
from colocam.utils.extensions import load_extensions, named_extensions
from colocam.utils.progress import progress, say, take
from colocam.video.fence import start_decoder
from colocam.video.frame_choice import FrameChoice
from colocam.video.input import DecoderLostError, UnreadableError, VideoError

SECONDS_TO_END = 2.0
"""For all workers to remove their temporary files."""
MOST_STARTS = 20
"""Give up after this many workers in a row fail to start."""
START_LIMIT = 600.0
"""Seconds that a worker may take to be ready."""
STORAGE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Errors of the storage, which no video is to blame for."""
T = TypeVar("T", bound=Task)


class LostError(VideoError):
    """A video could not be done this time: its worker died, made no progress, or met a fault; another may do it."""


ERRORS: dict[str, type[ColocamError]] = {
    one.__name__: one
    for one in (ForeignFileError, DecoderLostError, UnreadableError, LostError, VideoError, InterruptedRunError)
}
"""Errors that a worker may name; any other concerns all videos."""
AGAIN = (LostError, DecoderLostError)
"""Errors after which another attempt may succeed."""


@dataclass(frozen=True)
class Model:
    """The model of a command, and all that changes its results; it can be pickled.

    Attributes:
        run: run folder of a trained model, or an ONNX file made from it.
        device: as the user named it.
        refine: a segmenter, see :func:`colocam.segment.load_segmenter`; None: none.
        options: fields of :class:`colocam.inference.options.Options`.
        extensions: that workers load, see :func:`colocam.utils.extensions.load_extensions`.
    """

    run: Path
    device: str | None = None
    refine: str | Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    extensions: Sequence[str] = field(default_factory=named_extensions)

    def key(self, choice: FrameChoice) -> str:
        """Digest of the content of the model and of what else changes results."""
        options = {**asdict(make_options(**self.options)), "batch": None}
        settings = {**options, "choice": asdict(choice), "device": self.device}
        return model_key(self.run, settings, () if self.refine is None else segmenter_files(self.refine))

    def load(self) -> list[Localizer]:
        """The model on the device, or, where none is named, on each GPU."""
        load_extensions(self.extensions)
        segmenter = None if self.refine is None else load_segmenter(self.refine, self.device)
        devices = self.devices if self.refine is None else self.devices[:1]
        loaded = [open_network(self.run, device) for device in devices]
        return [Localizer(network, card, segmenter=segmenter, **self.options) for network, card in loaded]

    @cached_property
    def devices(self) -> list[str | None]:
        """Names of the devices that share the work."""
        if self.device not in {None, "cuda"} or (self.run.suffix.lower() == ".onnx" and not self.run.is_dir()):
            return [self.device]
        import torch  # noqa: PLC0415 - an ONNX file needs no torch

        return [f"cuda:{index}" for index in range(torch.cuda.device_count())] or [self.device]


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


class Here:
    """Does each task at once in the thread that submits it: a single video, a camera, a segmenter."""

    places = 0

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def submit(self, task: Task) -> "Future[Result]":
        """Do a task."""
        future: Future[Result] = Future()
        try:
            future.set_result(result_of(attempt(task, self._worker)))
        except ColocamError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Nothing is under way."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker process needs to know.

    Attributes:
        rows: frames of a pass.
        shape: of the network's outputs.
        card: of the model.
        options: fields of :class:`colocam.inference.options.Options`.
        extensions: to load.
        digests: file that remembers digests of videos; None: none does.
    """

    rows: int
    shape: OutputShape
    card: Card
    options: dict[str, Any]
    extensions: Sequence[str]
    digests: Path | None


def packed(trusted: object) -> str:
    """Text for :func:`unpacked`."""
    return base64.b64encode(pickle.dumps(trusted)).decode("ascii")


def unpacked(text: str) -> Any:  # noqa: ANN401 - whatever was packed
    """What a parent process packed."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - from the parent alone


class Workers:
    """Worker processes around the networks of this process, see :mod:`colocam.inference.worker_process`.

    Results are the same whatever their number: a video's passes have the same rows as in one process, and never depend
    on those of another (:class:`Passes`). They take some seconds to start, while the model is loaded.

    Args:
        count: how many.
        passed: called with the number of frames that passed a network.
        limit: seconds without progress after which a worker is replaced.
    """

    def __init__(self, count: int, passed: Callable[[int], object] = int, limit: float = inf) -> None:
        self.places = count
        self._passed, self._limit = passed, limit
        self._share = max(1, cores() // count)
        self._waiting: SimpleQueue[tuple[Task, Future[Result]] | None] = SimpleQueue()
        self._networks: list[Passes] = []
        self._setup: Setup | None = None
        self._starts = 0
        self._closing = threading.Event()
        self._drivers: list[_Driver] = []
        self._early = [self.start_process() for _ in range(count)]

    def start_process(self) -> ChildProcess:
        """Start a worker."""
        return ChildProcess("colocam.inference.worker_process", arguments=[self._share])

    def open(self, localizers: Sequence[Localizer], extensions: Sequence[str], digests: Path | None, most: int) -> None:
        """Begin with a model on one or several devices, and with up to ``most`` workers."""
        first = localizers[0]
        self._networks = [one.network for one in localizers if isinstance(one.network, Passes)]
        self._setup = Setup(first.network.rows, first.shape, first.card, asdict(first.options), extensions, digests)
        self._early += [self.start_process() for _ in range(most - self.places)]
        self.places = max(most, self.places)
        for index in range(self.places):
            self._drivers.append(_Driver(self, self._networks[index % len(self._networks)], self._early.pop()))
        if self._limit < inf:
            threading.Thread(target=self._watch, name="watch", daemon=True).start()

    @property
    def setup(self) -> Setup:
        """For a worker that begins."""
        assert self._setup is not None
        return self._setup

    def submit(self, task: Task) -> "Future[Result]":
        """Let a worker do a task."""
        future: Future[Result] = Future()
        self._waiting.put((task, future))
        return future

    def next_task(self) -> "tuple[Task, Future[Result]] | None":
        """For a worker that is idle; None: there are no more."""
        return self._waiting.get()

    def count(self, frames: int) -> None:
        """Frames passed a network."""
        self._passed(frames)

    @property
    def closing(self) -> bool:
        """Whether the workers are ending."""
        return self._closing.is_set()

    def lost(self, *, ready: bool, how: str) -> None:
        """A worker died; one that was not ready is worse.

        Raises:
            ColocamError: too many died before they were ready.
        """
        self._starts = 0 if ready else self._starts + 1
        if self._starts >= MOST_STARTS:
            raise ColocamError(f"{MOST_STARTS} workers in a row failed to start: {how}")

    def close(self) -> None:
        """End all workers, within seconds."""
        self._closing.set()
        for process in self._early:
            process.kill()
        for driver in self._drivers:
            self._waiting.put(None)
            driver.stop()
        deadline = time.monotonic() + SECONDS_TO_END
        for driver in self._drivers:
            driver.end(deadline)

    def _watch(self) -> None:
        while not self._closing.wait(min(1.0, self._limit / 4)):
            for driver in self._drivers:
                driver.end_stuck(self._limit)


class _Driver:
    """Drives one worker in a thread: gives it tasks, runs its passes, and replaces it when it dies."""

    def __init__(self, workers: Workers, network: Passes, process: ChildProcess) -> None:
        self._workers, self._network = workers, network
        self._process: _Process | None = _Process(workers, network, process)
        self._stuck = ""
        self._thread = threading.Thread(target=self._work, name="video worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the worker to clear up and end."""
        if self._process is not None:
            self._process.child.terminate()

    def end(self, deadline: float) -> None:
        """Wait for the worker, or end it if it does not end until then."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._process is not None:
            self._process.close()
        # A signal may find this thread inside a lock that the other waits for; it is a daemon and may stay.
        self._thread.join(max(0.1, deadline + 1 - time.monotonic()))

    def end_stuck(self, limit: float) -> None:
        """End a worker that made no progress for ``limit`` seconds."""
        process = self._process
        if process is None or not process.busy:
            return
        allowed = limit if process.ready else START_LIMIT
        if time.monotonic() - process.since > allowed:
            self._stuck = f"no progress for {allowed:g} s"
            process.child.end()

    def _work(self) -> None:
        while (given := self._workers.next_task()) is not None and not self._workers.closing:
            task, future = given
            try:
                future.set_result(self._do(task))
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the command
                future.set_exception(error)

    def _do(self, task: Task) -> Result:
        if self._process is None:
            self._process = _Process(self._workers, self._network, self._workers.start_process())
        if self._workers.closing:  # looked at after the worker can be seen, and ended, from outside
            raise InterruptedRunError("stopped")
        process = self._process
        answer = process.do(task)
        if answer is not None:
            return result_of(answer)
        if self._workers.closing:
            raise InterruptedRunError("stopped")
        how, self._process = process.close(), None
        how, self._stuck = self._stuck or f"its worker crashed ({how})", ""
        self._workers.lost(ready=process.ready, how=how)
        raise LostError(how)


class _Process:
    """A worker process, and what this process holds for it.

    Attributes:
        ready: whether it has started.
        busy: whether it works on a task.
        since: when it last made progress.
    """

    def __init__(self, workers: Workers, network: Passes, child: ChildProcess) -> None:
        self._lock = threading.Lock()
        self._workers = workers
        self.child = child
        self.ready = self.busy = False
        self.since = time.monotonic()
        self._served = ServedWorker(network, self.send, self._passed)
        self.send({"setup": packed(workers.setup)}, self._served.file)

    def do(self, task: Task) -> Message | None:
        """The answer of the worker to a task; None if it died."""
        self.since, self.busy = time.monotonic(), True
        try:
            if not self.send({"do": "task", "task": packed(task)}):
                return None
            while (message := self.child.channel.receive()) is not None:
                self.since = time.monotonic()
                match message["do"]:
                    case "pass" | "post":
                        self._served.receive(message)
                    case "said":
                        say(message["text"])
                    case "ready":
                        self.ready = True
                    case "done" | "failed":
                        return message
            return None
        finally:
            self.busy = False

    def send(self, message: Message, *files: int) -> bool:
        """Send a message, and files, which are closed here; False if the worker is gone."""
        try:
            with self._lock:
                self.child.channel.send(message, *files)
        except OSError:
            return False
        finally:
            for file in files:
                os.close(file)
        return True

    def close(self) -> str:
        """End the process and forget it; how it ended."""
        self._served.close()
        how = self.child.how_it_ended()
        self.child.kill()
        return how

    def _passed(self, frames: int) -> None:
        self.since = time.monotonic()
        self._workers.count(frames)


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
    several = (count > 1 or apart) and model.refine is None
    started = Workers(count, passed, limit) if several else None  # they start while the model is loaded
    try:
        if started is None:
            say(f"opening {model.run}")
            start_decoder()
        localizers = model.load()
        first = localizers[0]
        # Workers know no chooser that a script registered in this process alone.
        if started is not None and (model.extensions or first.chooser.candidates.__module__.startswith("colocam.")):
            started.open(localizers, model.extensions, digests, count if workers else min(most_workers(first), busy))
            yield started
        else:
            yield Here(Worker(first, FileDigests(digests), show=show))
    finally:
        if started is not None:
            started.close()


def most_workers(localizer: Localizer) -> int:
    """Workers that keep all cores busy: half as many more than cores, if they wait for the passes of a GPU."""
    return cores() * 3 // 2 if isinstance(localizer.network, Passes) and localizer.network.on_gpu else cores()


def attempt(task: Task, worker: Worker) -> Message:
    """Do a task, and say how it went in a message for :func:`result_of`."""
    try:
        return {"do": "done", "result": task(worker)}
    except ColocamError as error:
        return {"do": "failed", "error": type(error).__name__, "text": str(error)}
    except OSError as error:
        if error.errno in STORAGE:
            text = f"cannot write: {error.strerror}: free some space and run the same command again"
            return {"do": "failed", "error": "ColocamError", "text": text}
        return {"do": "failed", "error": LostError.__name__, "text": str(error)}
    except Exception as error:  # noqa: BLE001 - one video must not end the others
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        where = f"{Path(frame.f_code.co_filename).name}, line {line}"
        text = f"{type(error).__name__}: {first_line(error)} ({where})"
        return {"do": "failed", "error": LostError.__name__, "text": text}


def result_of(answer: Message) -> Result:
    """The result of a task, or its error."""
    if answer["do"] == "done":
        result: Result = answer["result"]
        return result
    raise ERRORS.get(answer["error"], ColocamError)(answer["text"])
