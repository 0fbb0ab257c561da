"""A video worker: a process that does all of a video but the network: decoding, boxes, paths, tables and encoding.

It imports no model, and torch only for a prior on a GPU; the network runs in the parent process
(:mod:`colocam.inference.remote`). What the parent sends is trusted and pickled; what goes back is JSON. Its decoder, a
child of its own, reads the hostile files (:mod:`colocam.video.fence`).

Tests: tests/inference/test_engine.py.
"""

import base64
import os
import pickle
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import cv2

from colocam.errors import ColocamError
from colocam.utils.child_processes import Parent
from colocam.utils.device import choose_device, limit_cores

if TYPE_CHECKING:
    from colocam.config.card import Card
    from colocam.config.options import Options
    from colocam.utils.progress import Advance


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker process needs to know.

    Attributes:
        rows: frames of a pass.
        card: of the model.
        options: of the command.
        extensions: to load.
        digests: file that remembers digests of videos; None: none does.
        prior_device: GPU that runs the prior; None: the CPU does.
    """

    rows: int
    card: "Card"
    options: "Options"
    extensions: Sequence[str]
    digests: Path | None
    prior_device: str | None = None


def packed(trusted: object) -> str:
    """Text for :func:`unpacked`."""
    return base64.b64encode(pickle.dumps(trusted)).decode("ascii")


def unpacked(text: str) -> Any:  # noqa: ANN401 - whatever was packed
    """What a parent process packed."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - from the parent alone


def main(control: int, life: int, share: int) -> None:
    """Do task after task until the parent ends; ``share`` is the number of cores for this worker."""
    parent = Parent(control, life)
    tasks = SimpleQueue[str]()
    stopping = threading.Event()

    def stop(*_: object) -> None:
        """End, so that temporary files and locks are removed, and wait for no pass."""
        stopping.set()
        sys.exit(1)

    def show(*_: object, **__: object) -> "AbstractContextManager[Advance]":
        """Show no progress, which the parent counts, but say that this process is alive."""
        return nullcontext(lambda *_: parent.sign())

    signal.signal(signal.SIGTERM, stop)
    limit_cores(share)  # before what divides work by their number is imported
    cv2.setNumThreads(share)
    # What takes seconds to import is imported while the parent loads the model.
    from colocam.inference.localizer import Localizer, output_shape  # noqa: PLC0415
    from colocam.inference.remote import RemoteNetwork  # noqa: PLC0415
    from colocam.inference.task import Worker, attempt  # noqa: PLC0415
    from colocam.maps.prior import open_prior  # noqa: PLC0415
    from colocam.utils.digests import FileDigests  # noqa: PLC0415
    from colocam.utils.extensions import load_extensions  # noqa: PLC0415
    from colocam.video.fence import start_decoder  # noqa: PLC0415

    start_decoder()
    message = parent.receive()
    if message is None:
        return
    setup: Setup = unpacked(message["setup"])
    parent.forward_stderr()
    network = RemoteNetwork(parent.send, setup.rows, output_shape(setup.card), message["files"][0], stopping)

    def listen() -> None:
        while (message := parent.receive()) is not None:
            tasks.put(message["task"]) if message["do"] == "task" else network.receive(message)
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    try:
        load_extensions(setup.extensions)
        gpu = None if setup.prior_device is None else choose_device(setup.prior_device)
        prior = None if setup.options.prior is None else open_prior(setup.options.prior, gpu)
        localizer = Localizer(network, setup.card, setup.options, prior=prior)
        worker = Worker(localizer, FileDigests(setup.digests), share, show)
    except ColocamError as error:  # as the answer to the first task
        parent.send({"do": "failed", "error": "ColocamError", "text": str(error)})
        return
    parent.send({"do": "ready"})
    while True:
        network.reset()
        task = unpacked(tasks.get())
        parent.send(attempt(partial(task, worker)))
