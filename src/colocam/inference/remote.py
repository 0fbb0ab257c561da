"""A network in another process: both ends of the connection between a video worker and the process with the network.

Images of passes go one way through shared memory, post-processed outputs the other; outputs that are not needed yet
stay with the network. Messages say what lies where. With the images go their ids, see
:data:`colocam.inference.network.Ids`, and come back with the outputs.

Tests: tests/inference/test_engine.py, tests/inference/test_torch_network.py.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from threading import Event, Lock

import numpy as np

from colocam.errors import ColocamError
from colocam.inference.network import HostOutput, Ids, OutputShape, PostProcessing
from colocam.inference.passes import Passes, PassRows, Waited
from colocam.temporal.cuts import WINDOW
from colocam.types import Levels
from colocam.utils.child_processes import Message, map_file, memory_file
from colocam.utils.progress import wait_for

PASSES = 3
"""Passes that a worker may fill before the network has taken the first."""
OUTPUTS = 3
"""Windows whose outputs may be under way."""


class PassMemory:
    """The shared memory, on either side.

    Args:
        rows: frames of a pass at most.
        shape: of the network's outputs.
        file: open file of the memory, which is closed here; None: of a new one.
    """

    def __init__(self, rows: int, shape: OutputShape, file: int | None = None) -> None:
        self._shape = shape
        output = self._output_type("float32", max(rows, WINDOW)).itemsize  # of a pass or of a window
        parts = np.dtype(
            [
                ("ids", np.int64, (PASSES, rows, 2)),
                ("outputs", np.uint8, (OUTPUTS, output)),
                ("images", np.uint8, (PASSES, rows, shape.size, shape.size, 3)),
            ]
        )
        self.file = memory_file(parts.itemsize) if file is None else file
        memory = np.frombuffer(map_file(os.dup(self.file) if file is None else file), parts)
        (self._ids,), (self._outputs,), (self._images,) = memory["ids"], memory["outputs"], memory["images"]

    def images(self, slot: int) -> tuple[Levels, Ids]:
        """(rows, S, S, 3) images of a pass, and (rows, 2) ids."""
        return self._images[slot], self._ids[slot]

    def write_output(self, slot: int, output: HostOutput) -> list[object]:
        """Write an output; returns what :meth:`read_output` needs: the type of its maps, and the number of frames."""
        maps, frames = output.maps.dtype.name, len(output.logits)
        kind = self._output_type(maps, frames)
        (written,) = self._outputs[slot, : kind.itemsize].view(kind)
        for name, part in output._asdict().items():
            written[name] = part
        return [maps, frames]

    def read_output(self, slot: int, maps: str, frames: int) -> HostOutput:
        """A copy of the output in a slot."""
        kind = self._output_type(maps, frames)
        (read,) = self._outputs[slot, : kind.itemsize].copy().view(kind)
        return HostOutput(*(read[name] for name in HostOutput._fields))

    def _output_type(self, maps: str, frames: int) -> np.dtype[np.void]:
        """A :class:`HostOutput` in memory."""
        classes, side = self._shape.classes, self._shape.map_size
        parts = [
            ("logits", np.float32, (frames, classes)),
            ("maps", maps, (frames, side, side)),
            ("peaks", np.float32, (frames, classes)),
            ("foreground", np.float32, (frames,)),
            ("ids", np.int64, (frames, 2)),
        ]
        return np.dtype(parts, align=True)


class ServedWorker:
    """What the network's process holds for one video worker.

    Args:
        passes: of the network.
        send: sends a message to the worker; may be called in any thread.
        passed: called with the number of frames that passed the network.

    Attributes:
        file: open file of the shared memory, for the worker; it is closed by whoever sends it.
    """

    def __init__(self, passes: Passes, send: Callable[[Message], object], passed: Callable[[int], object]) -> None:
        self._network, self._send, self._passed = passes, send, passed
        self._memory = PassMemory(passes.rows, passes.shape)
        self.file = self._memory.file
        self._passes: dict[int, PassRows] = {}
        self._outputs = ThreadPoolExecutor(1, "outputs")
        self._closing = Event()

    def receive(self, message: Message) -> None:
        """Deal with a message of the worker's network."""
        if message["do"] == "pass":
            for number in message["dropped"]:
                del self._passes[number]
            rows, slot = message["rows"], message["slot"]
            images, ids = self._memory.images(slot)
            self._passes[message["number"]] = self._network.submit(
                images[:rows],
                ids[:rows].copy(),
                slice(*message["new"]),
                self._passed if message["counted"] else int,
                lambda: self._send({"do": "taken", "slot": slot}),
                whole=message["whole"],
            )
            return
        # Rows are looked up now: the worker may drop a pass before its outputs are computed.
        parts = [PassRows(self._passes[number].handle, start, stop) for number, start, stop in message["parts"]]
        self._outputs.submit(self._post, message, parts)

    def close(self) -> None:
        """Forget the worker and what it submitted."""
        self._closing.set()
        for future in [future for one in self._passes.values() for future in one.handle.futures.values()]:
            future.cancel()
        self._passes.clear()
        self._outputs.shutdown(wait=False, cancel_futures=True)

    def _post(self, message: Message, parts: list[PassRows]) -> None:
        number = message["number"]
        try:
            output = self._network.postprocess(parts, _postprocessing(message), self._closing)()
            self._send({"do": "posted", "number": number, "output": self._memory.write_output(message["slot"], output)})
        except Exception as error:  # noqa: BLE001 - it is raised in the worker
            text = str(error) if isinstance(error, ColocamError) else f"{type(error).__name__}: {error}"
            self._send({"do": "failed", "number": number, "text": text})


class _Kept:
    """A pass that the network's process keeps; ``dropped`` takes its number when no row of it is needed any more."""

    def __init__(self, number: int, dropped: "deque[int]") -> None:
        self.number = number
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self.number)


class RemoteNetwork:
    """The network as a video worker sees it: like :class:`colocam.inference.passes.Passes`.

    Args:
        send: sends a message to the other process; may be called in any thread.
        rows: frames of a pass.
        shape: of the network's outputs.
        file: open file of the shared memory.
        stopping: once set, nobody waits for outputs any more.
    """

    def __init__(
        self,
        send: Callable[[Message], None],
        rows: int,
        shape: OutputShape,
        file: int,
        stopping: Event | None = None,
    ) -> None:
        self.rows, self.shape = rows, shape
        self._send, self._stopping = send, stopping or Event()
        self._memory = PassMemory(rows, shape, file)
        self._count = 0
        self._lock = Lock()
        self._dropped: deque[int] = deque()
        self._posts: dict[int, Future[list[object]]] = {}
        self._free, self._free_outputs = _queue(PASSES), _queue(OUTPUTS)

    def submit(
        self,
        images: Levels,
        ids: Ids,
        new: slice,
        passed: Callable[[int], object] = int,  # noqa: ARG002 - the process with the network counts
        *,
        whole: bool = False,
        counted: bool = True,
    ) -> PassRows:
        """Start a pass."""
        slot, number = self._free.get(), self._number()
        shared, shared_ids = self._memory.images(slot)
        shared[: len(images)], shared_ids[: len(images)] = images, ids
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        rows = {"rows": len(images), "new": [new.start, new.stop], "whole": whole, "counted": counted}
        self._send({"do": "pass", "number": number, "slot": slot, **rows, "dropped": dropped})
        used = slice(0, len(images)) if whole else new
        return PassRows(_Kept(number, self._dropped), used.start, used.stop)

    def postprocess(self, parts: Sequence[PassRows], how: PostProcessing, *_: Event) -> Waited:
        """Start to post-process maps; returns a function that waits for the result."""
        slot = self._free_outputs.get()
        number = self._number()
        future = Future[list[object]]()
        self._posts[number] = future
        colors, windows = (None if ids is None else ids.tolist() for ids in (how.colors, how.windows))
        rows = [[part.handle.number, part.start, part.stop] for part in parts]
        settings = {"colors": colors, "windows": windows, "tag": how.tag, "power": how.power}
        self._send({"do": "post", "number": number, "slot": slot, "parts": rows, **settings})

        def output() -> HostOutput:
            try:
                return self._memory.read_output(slot, *wait_for(future, self._stopping))  # type: ignore[arg-type]
            finally:
                self._free_outputs.put(slot)

        return output

    def reset(self) -> None:
        """Wait for what a video that failed left under way, and make all memory free for the next video."""
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
                self._posts.pop(message["number"]).set_result(message["output"])
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


def _postprocessing(message: Message) -> PostProcessing:
    colors, windows = (
        None if message[name] is None else np.array(message[name], np.int64) for name in ("colors", "windows")
    )
    return PostProcessing(colors, windows, message["tag"], message["power"])
