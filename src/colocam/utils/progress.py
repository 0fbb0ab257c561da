"""Show the progress of long work, and stop it on Ctrl-C: a training when its step is saved, other work at once."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from queue import Empty, Queue
from threading import Event, Lock, Thread
from types import FrameType
from typing import Any, NoReturn, TypeVar
from unicodedata import category
from weakref import WeakSet

from colocam.errors import InterruptedRunError

SECONDS_BETWEEN_LINES = 10.0
SECONDS_TO_FIRST_LINE = 2.0
"""After this a first line is printed even if nothing is done yet: a pass of a slow network takes minutes."""
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that change what a terminal shows: control, direction of text, half characters, lines."""

_muted = False

Advance = Callable[..., None]
"""``advance(steps=1, note="")``: report, in any thread, that ``steps`` more are done, with a short remark."""
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_LEAVE = 1.0
"""For the present pass to end by itself."""
_requested = False
_long_work: WeakSet[Future[Any]] = WeakSet()
_lock = Lock()
T = TypeVar("T")


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first ``most`` names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def say(text: str) -> None:
    """Print one line on stderr; stdout is for results."""
    if not _muted:
        print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def muted() -> Iterator[None]:
    """Print nothing within this block: another process reports for this one."""
    global _muted  # noqa: PLW0603 - stderr is one for the whole process
    _muted = True
    try:
        yield
    finally:
        _muted = False


def printable(text: str) -> str:
    """``text`` in one line; control characters, which a terminal would obey, are replaced by their escapes."""
    if text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if category(one) in HIDDEN else one for one in text)


@contextmanager
def progress(title: str, total: int, *, unit: str = "it", done: int = 0) -> Iterator[Advance]:
    """Show the progress of ``title``; ``done`` of ``total`` (0: unknown) were finished by an earlier run."""
    show = _bar if sys.stderr.isatty() and not _muted else _lines
    with show(title, total, unit, done) as advance:
        yield advance


@contextmanager
def _bar(title: str, total: int, unit: str, done: int) -> Iterator[Advance]:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as bars:
        task = bars.add_task(escape(printable(title)), total=total or None, completed=done, note="", rate="")

        def advance(steps: int = 1, note: str = "") -> None:
            bars.update(task, advance=steps)
            if note:
                bars.update(task, note=escape(printable(note)))
            if speed := bars.tasks[task].speed:
                bars.update(task, rate=f"{speed:.1f} {unit}/s")

        yield advance


@contextmanager
def _lines(title: str, total: int, unit: str, done: int) -> Iterator[Advance]:
    """One plain line every few seconds, for logs and pipes, also while nothing advances, and one at the end."""
    count = done
    remark = ""
    began = time.monotonic()
    over = Event()
    one_at_a_time = Lock()

    def advance(steps: int = 1, note: str = "") -> None:
        nonlocal count, remark
        with one_at_a_time:
            count, remark = count + steps, note or remark

    def show() -> None:
        elapsed = max(time.monotonic() - began, 1e-9)
        rate = (count - done) / elapsed
        left = f", {(total - count) / rate:.0f} s left" if rate and count < total else ""
        share = f"{count}/{total}" if total else f"{count} {unit}"
        say(f"{title}: {share} in {elapsed:.0f} s, {rate:.1f} {unit}/s{left}{'  ' if remark else ''}{remark}")

    def keep_showing() -> None:
        wait = SECONDS_TO_FIRST_LINE
        while not over.wait(wait):
            show()
            wait = SECONDS_BETWEEN_LINES

    watcher = Thread(target=keep_showing, name="progress", daemon=True)
    watcher.start()
    try:
        yield advance
    finally:
        over.set()
        watcher.join()
    show()


@contextmanager
def graceful_stop() -> Iterator[None]:
    """Within this block SIGINT and SIGTERM set a flag; a second signal stops at once. Files stay whole either way.

    The flag is cleared at the end of the block. A signal that this process ignores, as a job behind ``nohup`` or in the
    background of a script ignores SIGINT, stays ignored.
    """
    global _requested  # noqa: PLW0603 - set by a signal handler
    try:
        heard = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
        previous = {number: signal.signal(number, _on_signal) for number in heard}
    except ValueError:  # not the main thread, where signals cannot be caught
        yield
        return
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _requested = False


def end_like_ctrl_c() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that temporary files are removed; for the command line."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError):  # not the main thread, where signals cannot be caught
            signal.signal(signal.SIGTERM, signal.default_int_handler)


def stop_requested() -> bool:
    """Whether the user asked to stop."""
    return _requested


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


def take(queue: "Queue[T]") -> T:
    """The next item of a queue, however long it takes.

    Python handles a signal that comes just before its main thread blocks only when that wakes: so it wakes at times.
    """
    while True:
        try:
            return queue.get(timeout=SECONDS_BETWEEN_LOOKS)
        except Empty:
            continue


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
    global _requested  # noqa: PLW0603
    if _requested:
        raise KeyboardInterrupt
    _requested = True
    say("stopping after this step and saving; press Ctrl-C again to stop immediately")
