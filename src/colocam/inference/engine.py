"""The engine: a model on the devices of this machine, and the pool that runs tasks around its networks.

videos ─► tasks ─► do_all ─► a pool: Here, Workers (processes), or RayWorkers (machines) ─► results

Below this process are two layers: workers, and the decoder of each. Both with one layer less were measured on an H200
with 16 cores (``lab/notes/speed.md``, "One layer less"), where tables come at 2,270 frames/s:

- Threads in place of workers reach about 300 frames/s, since Python's lock lets one of them run at a time. And a crash
  while boxes are found would end the command, not one worker.
- Workers that decode by themselves reach 2,327 frames/s. But nothing would end a decoder that hangs, and no code would
  go: single videos, the page, training and exports read hostile files through the decoder process, too.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import entry_points
from itertools import cycle
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue

from colocam.boxes.candidates import find_chooser
from colocam.config.options import DEFAULT, Options
from colocam.errors import ColocamError, InterruptedRunError
from colocam.inference.localizer import Localizer
from colocam.inference.passes import Passes
from colocam.inference.remote import ServedWorker
from colocam.inference.task import LostError, Pool, Result, Show, Task, Worker, as_known, result_of
from colocam.inference.videos import model_key
from colocam.inference.worker_process import Setup, packed
from colocam.segment import segmenter_files
from colocam.utils.child_processes import CAN_START, ChildProcess, Message
from colocam.utils.device import cores, start_gpu, without_collections
from colocam.utils.digests import FileDigests
from colocam.utils.extensions import GROUP, load_extensions, named_extensions
from colocam.utils.progress import long_work, progress, say
from colocam.video.fence import start_decoder
from colocam.video.frame_choice import FrameChoice

SECONDS_TO_END = 5.0
"""For all workers to remove their temporary files."""
MOST_STARTS = 20
"""Give up after this many workers in a row fail to start."""
START_LIMIT = 600.0
"""Seconds that a worker may take to be ready."""


@dataclass(frozen=True)
class Model:
    """The model of a command and everything that changes its results. It can be pickled.

    Attributes:
        run: run folder of a trained model, or an ONNX file made from it.
        options: how to run it.
        extensions: that workers load, see :func:`colocam.utils.extensions.load_extensions`.
    """

    run: Path
    options: Options = DEFAULT
    extensions: Sequence[str] = field(default_factory=named_extensions)

    def key(self, choice: FrameChoice) -> str:
        """Digest of the model's content and of everything else that changes results."""
        load_extensions(self.extensions)  # the chooser may be in one of them
        if self.options.chooser is not None:
            find_chooser(self.options.chooser)
        settings = {**self.options.settings(), "choice": asdict(choice)}
        refine = self.options.refine
        segmenter = () if refine is None else segmenter_files(refine)
        return model_key(self.run, settings, segmenter, self.options.prior)

    def load(self) -> list[Localizer]:
        """Load the model on the device; if none is named, once on each GPU."""
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
        except ModuleNotFoundError:  # opening the model will say so
            return [named]
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())] or [named]


class Here:
    """Runs each task at once, in the thread that submits it: for a single video, a camera or a segmenter."""

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
    """Load a model, and open a pool that runs tasks with it on this machine.

    Args:
        model: the model.
        workers: number of processes; None: one per core, or three per two cores with a GPU, but at most ``busy``.
        busy: how many workers would have something to do.
        apart: whether to use a worker process even if it is the only one.
        digests: file that remembers digests of videos; None: they are not remembered.
        passed: called with the number of frames that passed a network in worker processes.
        limit: seconds without progress after which a worker is replaced.
        show: shows progress if this process runs the tasks itself.
    """
    count = min(cores(), busy) if workers is None else min(workers, busy)
    several = (count > 1 or apart) and model.options.refine is None and CAN_START
    if (workers or 1) > 1 and not CAN_START:
        say("note: this system cannot share work among processes, so a single one does it all")
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
    """Whether workers know the chooser: a script may have registered it in this process only."""
    shipped = localizer.settings.chooser.candidates.__module__.startswith("colocam.")
    return shipped or bool(model.extensions) or bool(entry_points(group=GROUP))


def most_workers(localizer: Localizer) -> int:
    """How many workers keep all cores busy: one per core, or three per two cores if they wait for a GPU."""
    return cores() * 3 // 2 if isinstance(localizer.network, Passes) and localizer.network.on_gpu else cores()


class Workers:
    """Worker processes around the networks of this process, see :mod:`colocam.inference.worker_process`.

    The number of workers does not change results: a video's passes have the same rows as in one process, and never
    depend on another video (:class:`Passes`). Workers take some seconds to start, while the model is loaded. A worker
    that dies is replaced when the next task comes.

    Args:
        count: how many.
        passed: called with the number of frames that passed a network.
        limit: seconds without progress after which a worker is replaced.
    """

    def __init__(self, count: int, passed: Callable[[int], object] = int, limit: float = inf) -> None:
        self.places = count
        self._passed, self._limit = passed, limit
        self._share = max(1, cores() // count)
        self._threads: ThreadPoolExecutor | None = None  # one for each place: it waits for what the worker says
        self._idle: SimpleQueue[tuple[Passes, _Worker | None]] = SimpleQueue()
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._early = [self.start_process() for _ in range(count)]

    def start_process(self) -> ChildProcess:
        """Start a worker."""
        return ChildProcess("colocam.inference.worker_process", self._share)

    def open(self, localizers: Sequence[Localizer], extensions: Sequence[str], digests: Path | None, most: int) -> None:
        """Give the workers a model on one or several devices, and start more of them, up to ``most``."""
        first = localizers[0]
        gpu = None if first.prior is None or first.prior.gpu is None else str(first.prior.gpu.device)
        self._setup = packed(Setup(first.network.rows, first.card, first.options, extensions, digests, gpu))
        self._early += [self.start_process() for _ in range(most - self.places)]
        self.places = len(self._early)
        networks = cycle(one.network for one in localizers if isinstance(one.network, Passes))
        while self._early:
            network = next(networks)
            self._idle.put((network, self._begin(network, self._early.pop())))
        self._threads = ThreadPoolExecutor(self.places, "video worker")
        if self._limit < inf:
            threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def submit(self, task: Task) -> "Future[Result]":
        """Let a worker do a task."""
        assert self._threads is not None
        return long_work(self._threads.submit(self._do, task))

    def close(self) -> None:
        """End all workers, within seconds."""
        with self._lock:
            self._closing.set()
            workers = list(self._workers)
        for child in self._early:
            child.kill()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.child.terminate()
        deadline = time.monotonic() + SECONDS_TO_END
        for worker in workers:
            worker.child.how_it_ended(max(0.0, deadline - time.monotonic()))
            worker.child.end()
        # Each thread closes its own worker. A thread that begins a task only now must still find a place.
        idle: list[tuple[Passes, _Worker | None]] = []
        with suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for network, left in idle:
            if left is not None:
                left.close()
            self._idle.put((network, None))

    def _begin(self, network: Passes, child: ChildProcess | None = None) -> "_Worker":
        with self._lock:  # close() ends all workers that have begun; no other may begin after that
            if self._closing.is_set():
                raise InterruptedRunError("stopped")
            worker = _Worker(child or self.start_process(), network, self._setup, self._passed)
            self._workers.append(worker)
        return worker

    def _do(self, task: Task) -> Result:
        network, idle = self._idle.get()
        kept: _Worker | None = None
        try:
            worker = idle or self._begin(network)
            if (answer := worker.do(task)) is not None:
                kept = worker
                return result_of(answer)
            self._workers.remove(worker)
            how = worker.close()
        finally:
            self._idle.put((network, kept))
        if self._closing.is_set():
            raise InterruptedRunError("stopped")
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts >= MOST_STARTS:
            raise ColocamError(f"{MOST_STARTS} workers in a row failed to start: {how}")
        raise LostError(how)

    def _watch(self) -> None:
        while not self._closing.wait(min(1.0, self._limit / 4)):
            for worker in list(self._workers):
                worker.end_stuck(self._limit)


class _Worker:
    """A worker process, and what this process holds for it.

    Attributes:
        child: the process.
        ready: whether it has started.
    """

    def __init__(self, child: ChildProcess, network: Passes, setup: str, passed: Callable[[int], object]) -> None:
        self.child = child
        self.ready = self._busy = False
        self._since, self._stuck = time.monotonic(), ""  # when it last made progress; why it was ended
        self._passed = passed
        self._served = ServedWorker(network, self._send, self._count)
        self._send({"setup": setup}, self._served.file)
        os.close(self._served.file)

    def do(self, task: Task) -> Message | None:
        """The answer of the worker to a task; None if it died."""
        self._since, self._busy = time.monotonic(), True
        self._send({"do": "task", "task": packed(task)})
        try:
            while (message := self.child.channel.receive()) is not None:
                self._since = time.monotonic()
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
            self._busy = False

    def end_stuck(self, limit: float) -> None:
        """End the process if it made no progress with its task for ``limit`` seconds."""
        allowed = limit if self.ready else START_LIMIT
        if self._busy and time.monotonic() - self._since > allowed:
            self._stuck = f"no progress for {allowed:g} s"
            self.child.end()

    def close(self) -> str:
        """End the process and forget it; how it ended."""
        self._served.close()
        how = self._stuck or f"its worker crashed ({self.child.how_it_ended()})"
        self.child.kill()
        return how

    def _send(self, message: Message, *files: int) -> None:
        with suppress(OSError):  # it is gone; whoever waits for its answer will notice
            self.child.channel.send(message, *files)

    def _count(self, frames: int) -> None:
        self._since = time.monotonic()
        self._passed(frames)
