"""Which frames of a video to look at: a range in seconds or in frames, every Nth of them or so many a second."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite
from typing import Protocol, TypedDict, TypeVar

from colocam.errors import ColocamError


class Timed(Protocol):
    """A frame, as far as a choice is concerned."""

    @property
    def index(self) -> int:
        """Number of the frame in its video, from 0."""
        ...

    @property
    def pts(self) -> float:
        """Presentation time in seconds."""
        ...


T = TypeVar("T", bound=Timed)


class Chosen(TypedDict, total=False):
    """The fields of :class:`FrameChoice` as keywords."""

    every: int
    fps: float | None
    start: float | None
    end: float | None
    frames: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class FrameChoice:
    """A choice of frames; each keeps its number and its time in the video.

    Attributes:
        every: take one frame of so many, the first of the range first.
        fps: take about so many frames a second: those nearest to the moments k / fps after the first of the range, none
            of them twice. Not together with ``every``.
        start: from this presentation time on, in seconds as the video states it, and as tables list it.
        end: up to this presentation time, which is no longer in it.
        frames: from frame A up to B, which is no longer in it; None for an open end.
    """

    every: int = 1
    fps: float | None = None
    start: float | None = None
    end: float | None = None
    frames: tuple[int | None, int | None] = (None, None)

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ColocamError(f"--every {self.every}: give a number of frames, 1 or more")
        if self.fps is not None and not (isfinite(self.fps) and self.fps > 0):
            raise ColocamError(f"--fps {self.fps:g}: give frames per second, more than 0")
        if self.fps is not None and self.every != 1:
            raise ColocamError("--every and --fps: give one of them")
        if self.start is not None and self.end is not None and not self.start < self.end:
            raise ColocamError(f"--from {self.start:g} --to {self.end:g}: no time lies between them")
        first, stop = self.frames
        if min(first or 0, stop or 0) < 0 or (stop is not None and stop <= (first or 0)):
            raise ColocamError(f"--frames {self._range()}: give A:B with 0 ≤ A < B, or leave one out")

    @property
    def from_the_start(self) -> bool:
        """Whether the first frame of the video is the first chosen, whatever its time."""
        return self.start is None and not self.frames[0]

    def __call__(self, frames: Iterable[T]) -> Iterator[T]:
        """The chosen ones of all frames of a video, in order; with ``fps`` each is known when the next has come."""
        inside = self._inside(frames)
        return every_nth(inside, self.every) if self.fps is None else nearest(inside, self.fps)

    def estimate(self, total: int, rate: float) -> int:
        """About how many of ``total`` frames (0: unknown) at ``rate`` a second are chosen; 0 for unknown."""
        first, stop = self.frames
        last = min(total or inf, inf if stop is None else stop, inf if self.end is None else self.end * rate)
        if last == inf:
            return 0
        span = max(0.0, last - max(first or 0, (self.start or 0.0) * rate))
        return ceil(span / self.every if self.fps is None else span * min(1.0, self.fps / rate))

    def __str__(self) -> str:
        """The range in words, for errors."""
        parts = [f"from second {self.start:g}"] if self.start is not None else []
        parts += [f"before second {self.end:g}"] if self.end is not None else []
        parts += [f"of the numbers {self._range()}"] if self.frames != (None, None) else []
        return " and ".join(parts) or "at all"

    def _range(self) -> str:
        return ":".join("" if one is None else str(one) for one in self.frames)

    def _inside(self, frames: Iterable[T]) -> Iterator[T]:
        first, stop = self.frames
        for frame in frames:
            if (self.end is not None and frame.pts >= self.end) or (stop is not None and frame.index >= stop):
                return
            if frame.index >= (first or 0) and (self.start is None or frame.pts >= self.start):
                yield frame
            if stop is not None and frame.index == stop - 1:  # a camera need not take another picture for this
                return


ALL = FrameChoice()


def parse_frames(text: str) -> tuple[int | None, int | None]:
    """``A:B``, ``A:`` or ``:B`` as numbers."""
    parts = text.split(":")
    if len(parts) != 2 or not all(part == "" or (part.isascii() and part.isdigit()) for part in parts):
        raise ColocamError(f"--frames {text}: write A:B, for the frames from A up to B, which is no longer in it")
    first, stop = (int(part) if part else None for part in parts)
    return first, stop


def every_nth(frames: Iterable[T], step: int) -> Iterator[T]:
    """The first frame, and of each further ``step`` numbers the first that is there."""
    first, last = 0, -1
    for frame in frames:
        if last < 0:
            first = frame.index
        place = (frame.index - first) // step
        if place > last:
            last = place
            yield frame


def nearest(frames: Iterable[T], fps: float) -> Iterator[T]:
    """The frames nearest to t₀ + k / fps, t₀ the first one's time; of two equally near the earlier one, none twice.

    A frame is nearest to the moments between the middle to the frame before it (exclusive) and the middle to the frame
    after it. Where the clock of a video is set back, t₀ is set anew.
    """
    held: T | None = None
    origin = middle = 0.0
    passed = -1  # moments that frames before have taken

    def last_of_a_run() -> list[T]:
        """The held frame with as much room after it as before it."""
        return [] if held is None or floor((2 * held.pts - middle - origin) * fps) <= passed else [held]

    for frame in frames:
        if held is None or frame.pts < held.pts:
            yield from last_of_a_run()
            origin = middle = frame.pts
            passed = -1
        else:
            middle = (held.pts + frame.pts) / 2
            moments = floor((middle - origin) * fps)
            if moments > passed:
                passed = moments
                yield held
        held = frame
    yield from last_of_a_run()
