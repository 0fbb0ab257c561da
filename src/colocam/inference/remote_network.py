"""The network as a film worker sees it: passes go to the process that holds it, and outputs stay there until needed."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Event, Lock

import numpy as np

from colocam.errors import ColocamError
from colocam.inference.network import HostOutput, PostProcessing
from colocam.inference.pass_filler import GROUP
from colocam.inference.pass_memory import OUTPUTS, PASSES, PassMemory
from colocam.types import Levels
from colocam.utils.child_processes import Message
from colocam.utils.progress import wait_for


class _Pass:
    """A pass that the network's process keeps; ``dropped`` takes its number when no row of it is needed any more."""

    def __init__(self, number: int, dropped: "deque[int]") -> None:
        self.number = number
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.number)


class RemoteRows:
    """Outputs of consecutive rows of a pass, which are in the network's process."""

    def __init__(self, network: "RemoteNetwork", source: _Pass, start: int, stop: int) -> None:
        self.network, self.source, self.start, self.stop = network, source, start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, rows: slice) -> "RemoteRows":
        start, stop, _ = rows.indices(len(self))
        return RemoteRows(self.network, self.source, self.start + start, self.start + stop)


class RemoteNetwork:
    """A :class:`colocam.inference.network.Network` in another process.

    Args:
        send: sends a message to that process; may be called in any thread.
        memory: shared with it.
        rows: frames of a pass.
        stopping: once set, nobody waits for outputs any more.
    """

    def __init__(
        self, send: Callable[[Message], None], memory: PassMemory, rows: int, stopping: Event | None = None
    ) -> None:
        self.rows = rows
        self._stopping = stopping or Event()
        self._send = send
        self._memory = memory
        self._count = 0
        self._lock = Lock()
        self._dropped: deque[int] = deque()
        self._posts: dict[int, Future[tuple[str, int]]] = {}
        self._free, self._free_outputs = _queue(PASSES), _queue(OUTPUTS)

    def submit(self, images: Levels, /, new: slice | None = None) -> "Future[RemoteRows]":
        """Start a pass over images (B, S, S, 3); only the outputs of the rows ``new`` will be used, None: of all."""
        first, last = (0, len(images)) if new is None else (new.start, new.stop)
        slot, number = self._free.get(), self._number()
        whole = slice(first // GROUP * GROUP, -(-last // GROUP) * GROUP)
        self._memory.images(slot)[: len(images)][whole] = images[whole]
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        rows = {"rows": len(images), "new": [first, last]}
        self._send({"do": "pass", "number": number, "slot": slot, **rows, "dropped": dropped})
        future: Future[RemoteRows] = Future()
        future.set_result(RemoteRows(self, _Pass(number, self._dropped), 0, len(images)))
        return future

    def postprocess(self, parts: Sequence[RemoteRows], how: PostProcessing) -> Callable[[], HostOutput]:
        """Start to post-process maps; returns a function that waits for the result."""
        slot, number, future = self._free_outputs.get(), self._number(), Future[tuple[str, int]]()
        self._posts[number] = future
        colors, windows = (None if ids is None else ids.tolist() for ids in (how.colors, how.windows))
        rows = [[part.source.number, part.start, part.stop] for part in parts]
        settings = {"colors": colors, "windows": windows, "tag": how.tag, "power": how.power}
        self._send({"do": "post", "number": number, "slot": slot, "parts": rows, **settings})

        def output() -> HostOutput:
            try:
                return self._memory.read_output(slot, *wait_for(future, self._stopping))
            finally:
                self._free_outputs.put(slot)

        return output

    def reset(self) -> None:
        """Wait for what a film that failed left under way, and make all memory free for the next film."""
        wait(list(self._posts.values()))
        for slot in [self._free.get() for _ in range(PASSES)]:
            self._free.put(slot)
        self._free_outputs = _queue(OUTPUTS)

    def receive(self, message: Message) -> None:
        """Deal with a message from the network's process."""
        match message["do"]:
            case "taken":
                self._free.put(message["slot"])
            case "posted":
                self._posts.pop(message["number"]).set_result((message["maps"], message["frames"]))
            case "failed":
                self._posts.pop(message["number"]).set_exception(ColocamError(message["text"]))

    def _number(self) -> int:
        with self._lock:
            self._count += 1
            return self._count


def _queue(slots: int) -> "SimpleQueue[int]":
    queue: SimpleQueue[int] = SimpleQueue()
    for slot in range(slots):
        queue.put(slot)
    return queue


def postprocessing_of(message: Message) -> PostProcessing:
    """The settings in a message of :meth:`RemoteNetwork.postprocess`."""
    colors, windows = (
        None if message[name] is None else np.array(message[name], np.int64) for name in ("colors", "windows")
    )
    return PostProcessing(colors, windows, message["tag"], message["power"])
