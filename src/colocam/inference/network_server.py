"""Run a network for film workers: each has its own connection and shared memory, all share the passes."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from colocam.errors import ColocamError
from colocam.inference.network import Network, NetworkOutput, OutputShape, checked, rows_of
from colocam.inference.pass_filler import PassFiller
from colocam.inference.pass_memory import PassMemory, PassSizes
from colocam.inference.remote_network import postprocessing_of
from colocam.inference.stages import postprocess
from colocam.utils.child_processes import Message

Groups: TypeAlias = "dict[int, Future[NetworkOutput]]"
"""The groups of a pass that were computed, by their first row."""


class NetworkServer:
    """The network of one device, for several film workers."""

    def __init__(self, network: Network, shape: OutputShape) -> None:
        self.network, self.shape = network, shape
        self._fillers: dict[int, PassFiller] = {}
        self._lock = threading.Lock()

    def filler(self, rows: int) -> PassFiller:
        """What fills passes of so many rows."""
        with self._lock:
            if rows not in self._fillers:
                self._fillers[rows] = PassFiller(self.network, rows, self.shape)
            return self._fillers[rows]

    def close(self) -> None:
        """End the threads."""
        for filler in self._fillers.values():
            filler.close()


class ServedWorker:
    """What the network's process holds for one film worker.

    Args:
        server: the network.
        send: sends a message to the worker; may be called in any thread.
        passed: called with the number of frames that passed the network.
    """

    def __init__(
        self, server: NetworkServer, send: Callable[[Message], object], passed: Callable[[int], object] = int
    ) -> None:
        self._server, self._send, self._passed = server, send, passed
        sizes = PassSizes(server.network.rows, server.shape)
        self._file = sizes.file()
        self._memory = PassMemory(os.dup(self._file), sizes)
        self._passes: dict[int, tuple[int, Groups]] = {}
        self._outputs = ThreadPoolExecutor(1, "outputs")

    def take_file(self) -> int:
        """The open file of the shared memory, once; for the worker, and to be closed then."""
        return self._file

    def receive(self, message: Message) -> None:
        """Deal with a message of the worker's network."""
        if message["do"] == "pass":
            self._start_pass(message)
        else:
            # Rows are looked up now: the worker may drop a pass before its outputs are computed.
            parts = [(*self._passes[number], start, stop) for number, start, stop in message["parts"]]
            self._outputs.submit(self._post, message, parts)

    def close(self) -> None:
        """Forget the worker and what it submitted."""
        for future in (future for _, groups in self._passes.values() for future in groups.values()):
            future.cancel()
        self._passes.clear()
        self._outputs.shutdown(wait=False, cancel_futures=True)

    def _start_pass(self, message: Message) -> None:
        for number in message["dropped"]:
            del self._passes[number]
        filler = self._server.filler(message["rows"])
        first, last = message["new"]
        images = self._memory.images(message["slot"])
        groups: Groups = {}
        for begin in range(first // filler.group * filler.group, last, filler.group):
            groups[begin] = filler.submit(images[begin : begin + filler.group])
            frames = min(begin + filler.group, last) - max(begin, first)
            groups[begin].add_done_callback(partial(self._count, frames))
        self._passes[message["number"]] = filler.group, groups
        self._send({"do": "taken", "slot": message["slot"]})

    def _count(self, frames: int, future: "Future[NetworkOutput]") -> None:
        if not future.cancelled():
            self._passed(frames)

    def _post(self, message: Message, parts: list[tuple[int, Groups, int, int]]) -> None:
        number, shape = message["number"], self._server.shape
        try:
            outputs = [
                rows_of(checked(groups[begin].result(), group, shape), slice(max(start - begin, 0), stop - begin))
                for group, groups, start, stop in parts
                for begin in range(start // group * group, stop, group)
            ]
            output = postprocess(outputs, postprocessing_of(message))()
            maps, frames = self._memory.write_output(message["slot"], output)
        except Exception as error:  # noqa: BLE001 - it is raised in the worker
            text = str(error) if isinstance(error, ColocamError) else f"{type(error).__name__}: {error}"
            self._send({"do": "failed", "number": number, "text": text})
        else:
            self._send({"do": "posted", "number": number, "maps": maps, "frames": frames})
