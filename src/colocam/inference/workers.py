"""Worker processes around the networks of this process; see :mod:`colocam.inference.worker_process`."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from math import inf
from pathlib import Path
from queue import SimpleQueue

from colocam.errors import ColocamError, InterruptedRunError
from colocam.inference.localizer import Localizer
from colocam.inference.passes import Passes
from colocam.inference.remote import ServedWorker
from colocam.inference.worker import LostError, Result, Setup, Task, packed, result_of
from colocam.utils.child_processes import ChildProcess, Message
from colocam.utils.device import cores
from colocam.utils.progress import say

SECONDS_TO_END = 2.0
"""For all workers to remove their temporary files."""
MOST_STARTS = 20
"""Give up after this many workers in a row fail to start."""
START_LIMIT = 600.0
"""Seconds that a worker may take to be ready."""


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
