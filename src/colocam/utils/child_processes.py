"""Processes of our own that end with this one, and what passes between them.

Messages are JSON, with open files beside them; arrays go through shared memory. No pickles: a process that reads
hostile files may be made to send anything.

Tests: tests/inference/test_engine.py, tests/utils/test_limited_child.py, tests/video/test_fence.py.
"""

import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from mmap import mmap
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from threading import Lock
from typing import TYPE_CHECKING, Any

from colocam.errors import ColocamError

if TYPE_CHECKING:
    import fcntl
else:
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows
        fcntl = None

Message = dict[str, Any]
# The script of the user is not imported again, unlike with multiprocessing: it need not guard its own start.
_START = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(*map(int, sys.argv[3:]))"
)
CAN_START = fcntl is not None
"""Whether this system can start such processes: they inherit open files, and a signal ends them with their parent."""
SECONDS_TO_END = 2.0
"""A process ends a little later than its end of the connection."""
BETWEEN_SIGNS = 0.2
"""Seconds between two signs of life at least."""


def memory_file(length: int) -> int:
    """An open file of ``length`` zero bytes in memory; the caller closes it.

    Unlike ``/dev/shm`` it has no small limit in containers. On Linux nobody can change its length, which would end a
    process that reads it.
    """
    if sys.platform == "linux":
        file = os.memfd_create("colocam", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, length)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return file
    with tempfile.TemporaryFile() as unnamed:
        os.ftruncate(unnamed.fileno(), length)
        return os.dup(unnamed.fileno())


def map_file(file: int) -> mmap:
    """The whole of an open file as shared memory; closes the file."""
    try:
        return mmap(file, 0)
    finally:
        os.close(file)


class Channel:
    """One end of a connection between two processes, which several threads may send to.

    Args:
        connection: one end of a pipe in both directions; it is closed with the channel.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, Lock()
        self._poll = select.poll()  # asked for every frame: the connection's own takes ten times as long
        self._poll.register(connection.fileno(), select.POLLIN)

    def send(self, message: Message, *files: int) -> None:
        """Send a message, and to a child also duplicates of open files.

        Raises:
            OSError: the other process is gone.
        """
        with self._lock:
            self._connection.send_bytes(json.dumps({**message, "files": len(files)} if files else message).encode())
            for file in files:
                send_handle(self._connection, file, None)

    def ready(self, seconds: float | None = 0.0) -> bool:
        """Wait for a message, or for the end of the other process; None: for ever."""
        return bool(self._poll.poll(None if seconds is None else 1e3 * seconds))

    def receive(self) -> Message | None:
        """The next message; None if the other process is gone."""
        try:
            message: Message = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return None
        return message

    @property
    def closed(self) -> bool:
        """Whether this end is closed."""
        return self._connection.closed

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


class Parent(Channel):
    """The end of a process that :class:`ChildProcess` started.

    The kernel ends this process when the parent is gone, also while compiled code runs: the parent holds the other end
    of the pipe ``life``. Ctrl-C, which a terminal sends to the children too, is the parent's.
    """

    def __init__(self, control: int, life: int) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGIO, signal.SIG_DFL)  # the default is to end the process
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        if wait([life], 0):  # the parent ended before the lines above
            raise SystemExit(1)
        super().__init__(Connection(control))
        self._signed = 0.0

    def send(self, message: Message, *files: int) -> None:
        """Send a message; without a parent there is nothing left to do."""
        try:
            super().send(message, *files)
        except OSError:
            os._exit(1)

    def receive(self) -> Message | None:
        """The next message; ``files`` in it are open files that came beside it, which the caller closes."""
        message = super().receive()
        if message is not None and "files" in message:
            message["files"] = [recv_handle(self._connection) for _ in range(message["files"])]
        return message

    def sign(self) -> None:
        """Say that this process is alive, unless it did so just now."""
        if time.monotonic() - self._signed > BETWEEN_SIGNS:
            self._signed = time.monotonic()
            self.send({"do": "alive"})

    def forward_stderr(self) -> None:
        """Send the lines for the user to the parent, which may show a progress bar."""
        sys.stderr = _Forwarded(self)


class _Forwarded(io.TextIOBase):
    def __init__(self, parent: Parent) -> None:
        self._parent = parent

    def write(self, text: str) -> int:
        if text.strip():
            self._parent.send({"do": "said", "text": text.rstrip("\n")})
        return len(text)


class ChildProcess:
    """A process that runs ``main(control, life, *arguments)`` of a module; see :class:`Parent`.

    It is started afresh, not forked, since threads and a GPU do not survive a fork.

    Args:
        module: name of the module.
        arguments: further numbers for ``main``.

    Attributes:
        channel: this end of the connection.
    """

    def __init__(self, module: str, *arguments: int) -> None:
        if not CAN_START:
            raise ColocamError("this needs processes that Windows does not have: use Linux, macOS or WSL")
        if not sys.executable:
            raise ColocamError("cannot start a process: this Python does not know its own program file")
        here, there = Pipe()
        life, self._life = os.pipe()
        self.channel = Channel(here)
        inherited = (there.fileno(), life)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-c", _START, json.dumps(sys.path), module, *map(str, (*inherited, *arguments))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=inherited,
            )
        except BaseException:
            self.channel.close()
            os.close(self._life)
            raise
        finally:
            there.close()
            os.close(life)

    def how_it_ended(self, seconds: float = SECONDS_TO_END) -> str:
        """In words, after its end of the connection was closed, or when it is told to end; waits so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        code = self._process.poll()
        if code is None:
            return "no more answers"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM); the channel stays open for a thread that reads from it."""
        self._process.terminate()

    def end(self) -> None:
        """End the process at once (SIGKILL); the channel stays open for a thread that reads from it."""
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """End the process at once, if it has not ended."""
        if self.channel.closed:
            return
        self.end()
        self.channel.close()
        os.close(self._life)
