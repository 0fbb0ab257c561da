"""Messages between two processes of one machine: JSON, with open files beside them; arrays go through shared memory.

No pickles: a process that reads hostile files may be made to send anything.
"""

import json
import os
import select
import signal
import socket
from collections import deque
from typing import Any, Self

Message = dict[str, Any]
CHUNK = 1 << 16
MOST_FILES = 4
"""Open files beside one message at most."""


class Channel:
    """One end of a connection between two processes.

    Args:
        end: a connected Unix socket; it is closed with the channel.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._data = b""
        self._messages: deque[bytes] = deque()
        self._files: deque[int] = deque()
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)

    @classmethod
    def to_parent(cls, control: int, life: int) -> Self:
        """The end of a process that :class:`colocam.utils.child_process.ChildProcess` started.

        From now on the kernel ends this process when the parent is gone, also while compiled code runs: the parent
        holds the other end of the pipe ``life``. Ctrl-C, which a terminal sends to the children too, is the parent's.
        """
        import fcntl  # noqa: PLC0415 - not on Windows, where no child is started

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGIO, signal.SIG_DFL)  # the default is to end the process
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        gone = select.poll()
        gone.register(life, select.POLLIN)
        if gone.poll(0):  # it ended before the lines above
            raise SystemExit(1)
        return cls(socket.socket(fileno=control))

    def send(self, message: Message, *files: int) -> None:
        """Send a message, and duplicates of open files.

        Raises:
            OSError: the other process is gone.
        """
        data = json.dumps(message).encode() + b"\n"
        if files:
            data = data[socket.send_fds(self._socket, [data], files) :]
        self._socket.sendall(data)

    def ready(self, seconds: float | None = 0.0) -> bool:
        """Wait for a message, or for the end of the other process; None: for ever."""
        return bool(self._messages) or bool(self._poll.poll(None if seconds is None else 1e3 * seconds))

    def receive(self) -> Message | None:
        """The next message; None if the other process is gone."""
        while not self._messages:
            try:
                data, files, _, _ = socket.recv_fds(self._socket, CHUNK, MOST_FILES)
            except OSError:
                return None
            if not data:
                return None
            self._files.extend(files)
            *whole, self._data = (self._data + data).split(b"\n")
            self._messages.extend(whole)
        message: Message = json.loads(self._messages.popleft())
        return message

    def take_file(self) -> int:
        """The next open file that came beside a message; the caller closes it."""
        return self._files.popleft()

    @property
    def closed(self) -> bool:
        """Whether this end is closed."""
        return self._socket.fileno() < 0

    def close(self) -> None:
        """Close this end, and the files that were not taken."""
        self._socket.close()
        while self._files:
            os.close(self._files.popleft())
