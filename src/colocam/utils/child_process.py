"""Start a Python process of our own that ends with this one, however this one ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from colocam.errors import ColocamError
from colocam.utils.channel import Channel

# The script of the user is not imported again, unlike with multiprocessing: it need not guard its own start.
_START = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(*map(int, sys.argv[3:]))"
)

SECONDS_TO_END = 2.0
"""A process ends a little later than its end of the connection."""


class ChildProcess:
    """A process that runs ``main(control, life, *files, *arguments)`` of a module; see :meth:`Channel.to_parent`.

    It is started afresh, not forked, since threads and a GPU do not survive a fork.

    Args:
        module: name of the module.
        files: open files that it inherits under the same numbers.
        arguments: further numbers for ``main``.

    Attributes:
        channel: this end of the connection.
    """

    def __init__(self, module: str, *files: int, arguments: Sequence[int] = ()) -> None:
        if not sys.executable:
            raise ColocamError("cannot start a process: this Python does not know its own program file")
        here, there = socket.socketpair()
        life, self._life = os.pipe()
        self.channel = Channel(here)
        inherited = (there.fileno(), life, *files)
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

    def how_it_ended(self) -> str:
        """In words, after its end of the connection was closed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_END)
        code = self._process.poll()
        if code is None:
            return "no more answers"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM); the channel stays open for a thread that reads from it."""
        self._process.terminate()

    def kill(self) -> None:
        """End the process at once, if it has not ended."""
        if self.channel.closed:
            return
        self._process.kill()
        self._process.wait()
        self.channel.close()
        os.close(self._life)
