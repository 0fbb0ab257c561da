"""Workers as processes of this machine."""

import signal
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import NamedTuple

from colocam.corpus.items import Died, Item, MakeLabeller, Message
from colocam.corpus.worker import serve


class _Worker(NamedTuple):
    process: SpawnProcess
    connection: Connection


class LocalPool:
    """Starts, feeds and ends worker processes; see :class:`colocam.corpus.coordinator.Pool`.

    A process is started anew, not forked: neither CUDA nor the threads of numeric libraries survive a fork.

    Args:
        make: makes the labeller of each worker.
    """

    def __init__(self, make: MakeLabeller) -> None:
        self._make = make
        self._context = get_context("spawn")
        self._workers: dict[int, _Worker] = {}

    def start(self, worker: int) -> None:
        """Start a worker; it reports when it is ready."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._make, worker), daemon=True)
        process.start()
        theirs.close()
        self._workers[worker] = _Worker(process, ours)

    def submit(self, worker: int, item: Item) -> None:
        """Give an item to a worker that is ready."""
        with suppress(OSError):  # it died; the next wait tells
            self._workers[worker].connection.send(item)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Messages of the workers, as soon as there are some."""
        sources = {one.connection: index for index, one in self._workers.items()}
        ends = {one.process.sentinel: index for index, one in self._workers.items()}
        told: list[tuple[int, Message]] = []
        ready = wait([*sources, *ends], seconds)
        for index in sorted({sources[one] if isinstance(one, Connection) else ends[one] for one in ready}):  # type: ignore[index]
            process, connection = self._workers[index]
            gone = process.exitcode is not None  # asked before, so that no message is lost
            open_end = True
            try:
                while connection.poll():
                    told.append((index, connection.recv()))
            except (EOFError, OSError):
                open_end = False
            if gone or not open_end:
                process.join(1.0)
                self.end(index)
                told.append((index, Died(_reason(process.exitcode))))
        return told

    def end(self, worker: int) -> None:
        """Kill a worker and wait until it is gone."""
        process, connection = self._workers.pop(worker)
        process.kill()
        process.join()
        connection.close()

    def close(self) -> None:
        """Kill all workers."""
        for worker in list(self._workers):
            self.end(worker)


def _reason(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"its worker was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"its worker was ended by signal {-code}"
    return f"its worker ended with exit code {code}"
