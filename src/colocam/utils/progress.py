"""Progress of long work: a bar with rate and remaining time on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from unicodedata import category

SECONDS_BETWEEN_LINES = 10.0
SECONDS_TO_FIRST_LINE = 2.0
"""After this a first line is printed even if nothing is done yet: a pass of a slow network takes minutes."""
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that change what a terminal shows: control, direction of text, half characters, lines."""

_muted = False

Advance = Callable[..., None]
"""``advance(steps=1, note="")``: report that ``steps`` more are done, with a short remark such as the current loss."""


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
    return "".join(_escape(one) if category(one) in HIDDEN else one for one in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


@contextmanager
def progress(title: str, total: int, *, unit: str = "it", done: int = 0) -> Iterator[Advance]:
    """Show the progress of ``title``; ``done`` of ``total`` (0: unknown) were finished by an earlier run."""
    if sys.stderr.isatty() and not _muted:
        with _bar(title, total, unit, done) as advance:
            yield advance
    else:
        lines, over = _Lines(title, total, unit, done), Event()
        watcher = Thread(target=lines.keep_printing, args=[over], name="progress", daemon=True)
        watcher.start()
        try:
            yield lines.advance
        finally:
            over.set()
            watcher.join()
        lines.print()


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


@dataclass
class _Lines:
    """One plain line every few seconds, for logs and pipes."""

    title: str
    total: int
    unit: str
    count: int
    note: str = ""
    began: float = field(default_factory=time.monotonic)
    printed: float = field(default_factory=time.monotonic)
    counted_from: int = field(init=False)

    def __post_init__(self) -> None:
        self.counted_from = self.count

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.count += steps
        self.note = note or self.note
        if time.monotonic() - self.printed >= SECONDS_BETWEEN_LINES:
            self.print()

    def keep_printing(self, over: Event) -> None:
        """Print a line at the latest every few seconds, also while nothing advances, until ``over`` is set."""
        wait = SECONDS_TO_FIRST_LINE
        while not over.wait(wait):
            since = time.monotonic() - self.printed
            if since >= min(wait, SECONDS_BETWEEN_LINES):
                self.print()
                since = 0.0
            wait = SECONDS_BETWEEN_LINES - since

    def print(self) -> None:
        """Print where the work stands."""
        self.printed = time.monotonic()
        elapsed = max(self.printed - self.began, 1e-9)
        rate = (self.count - self.counted_from) / elapsed
        left = f", {(self.total - self.count) / rate:.0f} s left" if rate and self.count < self.total else ""
        note = f"  {self.note}" if self.note else ""
        share = f"{self.count}/{self.total}" if self.total else f"{self.count} {self.unit}"
        say(f"{self.title}: {share} in {elapsed:.0f} s, {rate:.1f} {self.unit}/s{left}{note}")
