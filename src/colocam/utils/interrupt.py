"""Ctrl-C as a request: the step in flight ends, the run is saved, then the program stops."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from colocam.errors import InterruptedRunError
from colocam.utils.progress import say

_requested = False


@contextmanager
def graceful_stop() -> Iterator[None]:
    """Within this block SIGINT and SIGTERM only set a flag; a second one stops at once. Files stay whole either way.

    The request ends with the block: what the program does next starts unasked.
    """
    global _requested  # noqa: PLW0603 - a signal handler has no other way to speak
    try:
        previous = {number: signal.signal(number, _on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals cannot be caught there, and stay with whoever can
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _requested = False


def stop_requested() -> bool:
    """Whether the user asked to stop."""
    return _requested


def raise_if_stopped(what: str) -> None:
    """End work that keeps no state of its own, once the user asked to stop."""
    if _requested:
        raise InterruptedRunError(f"stopped in {what}")


def _on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature is Python's
    global _requested  # noqa: PLW0603
    if _requested:
        raise KeyboardInterrupt
    _requested = True
    say("stopping after this step and saving; once more to stop at once")
