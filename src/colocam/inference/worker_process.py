"""A video worker: a process that does all of a video but the network: decoding, boxes, paths, tables and encoding.

It imports neither torch nor a model; the network runs in the parent process (:mod:`colocam.inference.remote`). What the
parent sends is trusted and pickled; what goes back is JSON, since this process reads hostile files.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING

import cv2

from colocam.errors import ColocamError
from colocam.utils.child_processes import Channel, Message
from colocam.utils.device import limit_cores

if TYPE_CHECKING:
    from colocam.inference.worker import Setup
    from colocam.utils.progress import Advance

BETWEEN_SIGNS = 0.2
"""Seconds between two signs of life at least."""


class Line:
    """The connection to the parent, which several threads write to."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._sign = 0.0

    def send(self, message: Message) -> None:
        """Send a message; without a parent there is nothing left to do."""
        try:
            with self._lock:
                self._channel.send(message)
        except OSError:
            os._exit(1)

    @contextmanager
    def show(self, *_: object, **__: object) -> "Iterator[Advance]":
        """Show no progress, which the parent counts, but say that this process is alive."""

        def advance(*_: object) -> None:
            if time.monotonic() - self._sign > BETWEEN_SIGNS:
                self._sign = time.monotonic()
                self.send({"do": "alive"})

        yield advance

    def write(self, text: str) -> None:
        """Send a line for the user, in place of stderr."""
        if text.strip():
            self.send({"do": "said", "text": text.rstrip("\n")})

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        """No colours."""
        return False


def main(control: int, life: int, share: int) -> None:
    """Do task after task until the parent ends; ``share`` is the number of cores for this worker."""
    channel = Channel.to_parent(control, life)
    stopping = threading.Event()

    def stop(*_: object) -> None:
        """End, so that temporary files and locks are removed, and wait for no pass."""
        stopping.set()
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    line, tasks = Line(channel), SimpleQueue[str]()
    limit_cores(share)  # before what divides work by their number is imported
    cv2.setNumThreads(share)
    # What takes seconds to import is imported while the parent loads the model.
    from colocam.inference import parts, results  # noqa: F401, PLC0415
    from colocam.inference.localizer import Localizer  # noqa: PLC0415
    from colocam.inference.remote import RemoteNetwork  # noqa: PLC0415
    from colocam.inference.worker import Worker, attempt, unpacked  # noqa: PLC0415
    from colocam.utils.digests import FileDigests  # noqa: PLC0415
    from colocam.utils.extensions import load_extensions  # noqa: PLC0415
    from colocam.video.fence import start_decoder  # noqa: PLC0415

    start_decoder()
    message = channel.receive()
    if message is None:
        return
    setup: Setup = unpacked(message["setup"])
    sys.stderr = line
    network = RemoteNetwork(line.send, setup.rows, setup.shape, channel.take_file(), stopping)

    def listen() -> None:
        while (message := channel.receive()) is not None:
            tasks.put(message["task"]) if message["do"] == "task" else network.receive(message)
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    try:
        load_extensions(setup.extensions)
        worker = Worker(Localizer(network, setup.card, **setup.options), FileDigests(setup.digests), share, line.show)
    except ColocamError as error:  # as the answer to the first task
        line.send({"do": "failed", "error": "ColocamError", "text": str(error)})
        return
    line.send({"do": "ready"})
    while True:
        network.reset()
        line.send(attempt(unpacked(tasks.get()), worker))
