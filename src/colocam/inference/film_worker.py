"""A film worker: a process that does all of a film but the network: decoding, boxes, paths, tables and encoding.

It imports neither torch nor a model; the network runs in the parent process (:mod:`colocam.inference.remote_network`).
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import cv2

from colocam.errors import ColocamError
from colocam.utils.child_processes import Channel, Message
from colocam.utils.device import limit_cores

if TYPE_CHECKING:
    from colocam.inference.film import Command
    from colocam.inference.localizer import Localizer
    from colocam.utils.digests import FileDigests
    from colocam.utils.progress import Advance


class Line:
    """The connection to the parent, which several threads write to."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Send a message; without a parent there is nothing left to do."""
        try:
            with self._lock:
                self._channel.send(message)
        except OSError:
            os._exit(1)


class _Said:
    """Sends the lines for the user to the parent."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def write(self, text: str) -> None:
        if text.strip():
            self._line.send({"do": "said", "text": text.rstrip("\n")})

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def main(control: int, life: int, share: int) -> None:
    """Do film after film until the parent ends; ``share`` is the number of cores for this worker."""
    channel = Channel.to_parent(control, life)
    stopping = threading.Event()

    def stop(*_: object) -> None:
        """End, so that temporary files and locks are removed, and wait for no pass."""
        stopping.set()
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    line, films = Line(channel), SimpleQueue[Message]()
    limit_cores(share)  # before what divides work by their number is imported
    cv2.setNumThreads(share)
    # What takes seconds to import is imported while the parent loads the model.
    from colocam.config.card import Card  # noqa: PLC0415
    from colocam.inference.film import Command, Writing  # noqa: PLC0415
    from colocam.inference.localizer import Localizer  # noqa: PLC0415
    from colocam.inference.network import OutputShape  # noqa: PLC0415
    from colocam.inference.pass_memory import PassMemory, PassSizes  # noqa: PLC0415
    from colocam.inference.remote_network import RemoteNetwork  # noqa: PLC0415
    from colocam.utils.digests import FileDigests  # noqa: PLC0415
    from colocam.video.fence import start_decoder  # noqa: PLC0415
    from colocam.video.frame_choice import FrameChoice  # noqa: PLC0415

    start_decoder()
    line.send({"do": "ready"})
    setup = channel.receive()
    if setup is None:
        return
    sys.stderr = _Said(line)
    if setup["prepare"]:
        module, _, function = setup["prepare"].partition(":")
        getattr(import_module(module), function)()
    sizes = PassSizes(setup["rows"], OutputShape(*setup["shape"]))
    network = RemoteNetwork(line.send, PassMemory(channel.take_file(), sizes), setup["rows"], stopping)

    def listen() -> None:
        while (message := channel.receive()) is not None:
            films.put(message) if message["do"] == "film" else network.receive(message)
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    localizer = Localizer(network, Card.model_validate_json(setup["card"]), **setup["options"])
    chosen = setup["writing"].pop("choice")
    choice = FrameChoice(**{**chosen, "frames": tuple(chosen["frames"])})
    asked = setup["command"]
    memory = asked.pop("digests")
    digests = FileDigests(None if memory is None else Path(memory))
    command = Command(Path(asked.pop("run")), Writing(**setup["writing"], choice=choice), **asked)
    while True:
        network.reset()
        line.send(_film(localizer, films.get(), command, digests))


@contextmanager
def _unseen(*_: object, **__: object) -> "Iterator[Advance]":
    """Show no progress: the parent counts the frames that pass its network."""
    yield lambda *_, **__: None


def _film(localizer: "Localizer", message: Message, command: "Command", digests: "FileDigests") -> Message:
    """Do one film; what came of it."""
    from colocam.inference.film import localize_film  # noqa: PLC0415
    from colocam.inference.jobs import Job  # noqa: PLC0415
    from colocam.labels.table_files import ForeignFileError  # noqa: PLC0415
    from colocam.video.input import UnreadableError, VideoError, VideoInput  # noqa: PLC0415

    job = Job(VideoInput(*message["source"]), Path(message["target"]))
    try:
        return {"do": "done", "written": localize_film(localizer, job, command, digests, _unseen)}
    except (VideoError, ForeignFileError) as error:
        return {"do": "skipped", "text": str(error), "unreadable": isinstance(error, UnreadableError)}
    except ColocamError as error:
        return {"do": "error", "text": str(error)}
    except Exception:  # noqa: BLE001 - it is raised in the parent
        return {"do": "bug", "text": traceback.format_exc()}
