"""Localise in many films at once: film workers around one network, see :mod:`colocam.inference.film_worker`."""

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from queue import Queue

from colocam.errors import ColocamError
from colocam.inference.film import Command
from colocam.inference.jobs import Job
from colocam.inference.localizer import Localizer
from colocam.inference.network_server import NetworkServer, ServedWorker
from colocam.inference.result_files import ForeignFileError
from colocam.utils.channel import Message
from colocam.utils.child_process import ChildProcess
from colocam.utils.device import cores
from colocam.utils.progress import progress, say
from colocam.utils.temporary import clear_dead
from colocam.video.input import UnreadableError, VideoError

TRIES = 2
"""A film whose worker dies, e.g. for want of memory, is tried again."""

Outcome = bool | VideoError | ForeignFileError
"""Of a film: whether results were written, or why it was left out."""


def localize_films(
    localizer: Localizer, jobs: Sequence[Job], command: Command, workers: int, prepare: str = ""
) -> Iterator[tuple[Job, Outcome]]:
    """Localise in films with several workers; yields what came of each, in the order in which they are done.

    Results are the same to the last byte, whatever the number of workers: a film's passes have the same rows as in one
    process, and the passes of one film never depend on those of another (:class:`PassFiller`).

    Args:
        localizer: model and options; its network runs in this process.
        jobs: the films, all of them stored.
        command: what to do with each.
        workers: processes.
        prepare: ``module:function`` that each worker calls first, e.g. to load extensions.

    Raises:
        ColocamError: an error that concerns all films.
    """
    waiting = deque((job, 1) for job in jobs)
    news: Queue[tuple[Job | None, object]] = Queue()
    server = NetworkServer(localizer.network, localizer.shape)
    share = max(1, cores() // workers)
    setup = _setup(localizer, replace(command, threads=share), share, prepare)
    stopping = threading.Event()
    drivers = [_Driver(server, setup, waiting, news, stopping) for _ in range(workers)]
    try:
        with progress(f"localizing in {len(jobs)} videos", 0, unit="frames") as advance:
            done = 0
            while done < len(jobs):
                job, outcome = news.get()
                if isinstance(outcome, int) and job is None:
                    advance(outcome, f"{done} of {len(jobs)} videos done")
                elif job is None:
                    assert isinstance(outcome, BaseException)
                    raise outcome
                else:
                    done += 1
                    yield job, outcome  # type: ignore[misc]
    finally:
        stopping.set()
        for driver in drivers:
            driver.end()
        server.close()
        for folder in {job.target.parent for job in jobs}:
            clear_dead(folder)  # what a worker that was ended left


def _setup(localizer: Localizer, command: Command, share: int, prepare: str) -> Message:
    asked = {
        "run": str(command.run),
        "recompute": command.recompute,
        "overwrite": command.overwrite,
        "device": command.device,
        "threads": command.threads,
    }
    return {
        "cores": share,
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
        news: "Queue[tuple[Job | None, object]]",
        stopping: threading.Event,
    ) -> None:
        self._server, self._setup, self._waiting, self._news, self._stopping = server, setup, waiting, news, stopping
        self._worker: _Worker | None = None
        self._thread = threading.Thread(target=self._work, name="film worker", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the worker, whatever it does."""
        if self._worker is not None:
            self._worker.end()
        self._thread.join()
        if self._worker is not None:
            self._worker.close()

    def _work(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    job, tries = self._waiting.popleft()
                except IndexError:
                    return
                if self._worker is None:
                    self._worker = _Worker(self._server, self._setup)
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
            self._news.put((None, error))

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
                case "frames":
                    self._news.put((None, int(message["frames"])))
                case "said":
                    say(text)
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

    def __init__(self, server: NetworkServer, setup: Message) -> None:
        self._lock = threading.Lock()
        self.passes = ServedWorker(server, self.send)
        try:
            self.process = ChildProcess("colocam.inference.film_worker", self.passes.file)
        finally:
            os.close(self.passes.file)
        self.send(setup)

    def send(self, message: Message) -> bool:
        """Send a message; False if the worker is gone."""
        try:
            with self._lock:
                self.process.channel.send(message)
        except OSError:
            return False
        return True

    def end(self) -> None:
        """End the process; who waits for its messages is told."""
        self.process.signal_end()

    def close(self) -> str:
        """End the process and forget it; how it ended."""
        self.passes.close()
        how = self.process.how_it_ended()
        self.process.kill()
        return how
