"""Stop on Ctrl-C: a training after the current step, when it is saved; other work at once."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from threading import Event, Lock
from types import FrameType
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

from colocam.errors import InterruptedRunError
from colocam.utils.progress import say

SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_LEAVE = 1.0
"""For the present pass to end by itself."""

_requested = False
_signalled = False
_long_work: WeakSet[Future[Any]] = WeakSet()
_lock = Lock()
T = TypeVar("T")


@contextmanager
def graceful_stop() -> Iterator[None]:
    """Within this block SIGINT and SIGTERM set a flag; a second signal stops at once. Files stay whole either way.

    The flag is cleared at the end of the block.
    """
    global _requested, _signalled  # noqa: PLW0603 - set by a signal handler
    try:
        previous = {number: signal.signal(number, _on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, where signals cannot be caught
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _requested = _signalled = False


def end_like_ctrl_c() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that temporary files are removed; for the command line."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError):  # not the main thread, where signals cannot be caught
            signal.signal(signal.SIGTERM, signal.default_int_handler)


def stop_requested() -> bool:
    """Whether the user asked to stop."""
    return _requested


def request_stop() -> None:
    """Ask this process to stop, as its first signal does; a signal that follows is still its first."""
    global _requested  # noqa: PLW0603
    _requested = True


def raise_if_stopped(what: str) -> None:
    """Raise if the user asked to stop; for work that saves nothing."""
    if _requested:
        raise InterruptedRunError(f"stopped in {what}")


def wait_for(future: "Future[T]", *stopping: Event) -> T:
    """The result of ``future``; as soon as one of ``stopping`` is set, nobody waits for it any more.

    A pass of a large network on a CPU takes minutes and cannot be interrupted, so it is left to itself.

    Raises:
        InterruptedRunError: one of ``stopping`` was set first.
    """
    while not any(event.is_set() for event in stopping):
        try:
            return future.result(SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if future.done():  # the work itself raised it
                raise
    future.cancel()
    raise InterruptedRunError("stopped")


def long_work(future: "Future[T]") -> "Future[T]":
    """Remember work in a pool that may take minutes, so that :func:`leave` does not wait for it."""
    with _lock:
        _long_work.add(future)
    return future


def leave(code: int) -> NoReturn:
    """End the process. Python would wait for the threads of every pool; long work in them is ended instead."""
    with _lock:
        running = [future for future in _long_work if not future.cancel()]
    if not wait(running, SECONDS_TO_LEAVE).not_done:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature is Python's
    global _requested, _signalled  # noqa: PLW0603
    if _signalled:
        raise KeyboardInterrupt
    _requested = _signalled = True
    say("stopping after this step and saving; press Ctrl-C again to stop at once")
