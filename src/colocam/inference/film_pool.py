"""Localise in many films at once: film workers around one network, see :mod:`colocam.inference.film_worker`."""

import os
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import asdict, replace
from queue import Queue

from colocam.errors import ColocamError
from colocam.inference.film import Command
from colocam.inference.jobs import Job
from colocam.inference.localizer import Localizer
from colocam.inference.network_server import NetworkServer, ServedWorker
from colocam.inference.remote_network import RemoteNetwork
from colocam.labels.table_files import ForeignFileError
from colocam.utils.child_processes import ChildProcess, Message
from colocam.utils.device import cores
from colocam.utils.locks import clear_dead
from colocam.utils.progress import progress, say, take
from colocam.video.input import UnreadableError, VideoError

SECONDS_TO_END = 2.0
"""For all workers to remove their temporary files."""
TRIES = 2
"""A film whose worker dies, e.g. for want of memory, is tried again."""

Outcome = bool | VideoError | ForeignFileError
"""Of a film: whether results were written, or why it was left out."""
News = int | tuple[Job, Outcome] | BaseException
"""Frames that are done, a film that is done, or what ended the command."""


def most_workers(localizer: Localizer) -> int:
    """Workers that keep all cores busy: half as many more than cores, if they wait for the passes of a GPU."""
    assert not isinstance(localizer.network, RemoteNetwork)
    return cores() * 3 // 2 if localizer.network.on_gpu else cores()


def start_workers(count: int, others: int = 0) -> list[ChildProcess]:
    """Start film workers, beside ``others``; it takes some seconds, while other work goes on."""
    return [_start_worker(_share(count + others)) for _ in range(count)]


def _start_worker(share: int) -> ChildProcess:
    return ChildProcess("colocam.inference.film_worker", arguments=[share])


def _share(workers: int) -> int:
    """Cores of one worker."""
    return max(1, cores() // workers)


def localize_films(
    localizer: Localizer, jobs: Sequence[Job], command: Command, workers: Sequence[ChildProcess], prepare: str = ""
) -> Generator[tuple[Job, Outcome], None, None]:
    """Localise in films with several workers; yields what came of each, in the order in which they are done.

    Results are the same to the last byte, whatever the number of workers: a film's passes have the same rows as in one
    process, and the passes of one film never depend on those of another (:class:`PassFiller`).

    Args:
        localizer: model and options; its network runs in this process.
        jobs: the films, all of them stored.
        command: what to do with each.
        workers: from :func:`start_workers`; they are ended here.
        prepare: ``module:function`` that each worker calls first, e.g. to load extensions.

    Raises:
        ColocamError: an error that concerns all films.
    """
    waiting = deque((job, 1) for job in jobs)
    news: Queue[News] = Queue()
    assert not isinstance(localizer.network, RemoteNetwork)
    server = NetworkServer(localizer.network, localizer.shape)
    setup = _setup(localizer, replace(command, threads=_share(len(workers))), prepare)
    stopping = threading.Event()
    drivers: list[_Driver] = []
    try:
        drivers.extend(_Driver(server, setup, waiting, news, stopping, worker) for worker in workers)
        with progress(f"localizing in {len(jobs)} videos", 0, unit="frames") as advance:
            done = 0
            while done < len(jobs):
                match take(news):
                    case int(frames):
                        advance(frames, f"{done} of {len(jobs)} videos done")
                    case BaseException() as error:
                        raise error
                    case job, outcome:
                        done += 1
                        advance(0, f"{done} of {len(jobs)} videos done")
                        yield job, outcome
    finally:
        stopping.set()
        for driver in drivers:
            driver.stop()
        deadline = time.monotonic() + SECONDS_TO_END
        for driver in drivers:
            driver.end(deadline)
        server.close()
        for folder in {job.target.parent for job in jobs}:
            clear_dead(folder, again=True)  # what a worker that was ended left


def _setup(localizer: Localizer, command: Command, prepare: str) -> Message:
    asked = {
        "run": str(command.run),
        "recompute": command.recompute,
        "overwrite": command.overwrite,
        "device": command.device,
        "threads": command.threads,
        "digests": None if command.digests is None else str(command.digests),
    }
    return {
        "prepare": prepare,
        "rows": localizer.network.rows,
        "shape": localizer.shape,
        "card": localizer.card.model_dump_json(),
        "options": asdict(localizer.options),
        "writing": asdict(command.writing),
        "command": asked,
    }


class _Driver:
    """Drives one worker in a thread: gives it films, runs its passes, and replaces it when it dies."""

    def __init__(
        self,
        server: NetworkServer,
        setup: Message,
        waiting: "deque[tuple[Job, int]]",
        news: "Queue[News]",
        stopping: threading.Event,
        process: ChildProcess,
    ) -> None:
        self._server, self._setup, self._waiting, self._news, self._stopping = server, setup, waiting, news, stopping
        self._worker: _Worker | None = _Worker(server, setup, process, news)
        self._thread = threading.Thread(target=self._work, name="film worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the worker to clear up and end."""
        if self._worker is not None:
            self._worker.process.terminate()

    def end(self, deadline: float) -> None:
        """Wait for the worker, or end it if it does not end until then."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._worker is not None:
            self._worker.close()
        # A signal may find this thread inside a lock that the other waits for; it is a daemon and may stay.
        self._thread.join(max(0.1, deadline + 1 - time.monotonic()))

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    job, tries = self._waiting.popleft()
                except IndexError:
                    return
                if self._worker is None:
                    process = _start_worker(self._setup["command"]["threads"])
                    self._worker = _Worker(self._server, self._setup, process, self._news)
                if self._stopping.is_set():  # looked at after the worker can be seen, and ended, from outside
                    return
                outcome = self._film(self._worker, job)
                if outcome is None:
                    if self._stopping.is_set():
                        return
                    how = self._worker.close()
                    self._worker = None
                    if tries < TRIES:
                        self._waiting.append((job, tries + 1))
                        continue
                    outcome = VideoError(f"{job.source.name} was left out: its worker crashed ({how}), {tries} times")
                self._news.put((job, outcome))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the command
            self._news.put(error)

    def _film(self, worker: "_Worker", job: Job) -> Outcome | None:
        """What came of a film; None if the worker died."""
        source = job.source
        address = [source.address, source.format, source.must_be_stored]
        if not worker.send({"do": "film", "source": address, "target": str(job.target)}):
            return None
        while (message := worker.process.channel.receive()) is not None:
            text = message.get("text", "")
            match message["do"]:
                case "pass" | "post":
                    worker.passes.receive(message)
                case "said":
                    say(text)
                case "ready":
                    pass
                case "done":
                    return bool(message["written"])
                case "skipped":
                    return UnreadableError(text) if message["unreadable"] else VideoError(text)
                case "error":
                    raise ColocamError(text)
                case _:
                    raise RuntimeError(f"a film worker failed:\n{text}")
        return None


class _Worker:
    """A worker process, and what this process holds for it."""

    def __init__(self, server: NetworkServer, setup: Message, process: ChildProcess, news: "Queue[News]") -> None:
        self._lock = threading.Lock()
        self.process = process
        self.passes = ServedWorker(server, self.send, news.put)
        self.send(setup, self.passes.take_file())

    def send(self, message: Message, *files: int) -> bool:
        """Send a message, and files, which are closed here; False if the worker is gone."""
        try:
            with self._lock:
                self.process.channel.send(message, *files)
        except OSError:
            return False
        finally:
            for file in files:
                os.close(file)
        return True

    def close(self) -> str:
        """End the process and forget it; how it ended."""
        self.passes.close()
        how = self.process.how_it_ended()
        self.process.kill()
        return how
