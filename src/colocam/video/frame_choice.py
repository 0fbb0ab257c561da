"""Which frames of a video to process: a range in seconds or frames, every N-th frame, or a frame rate."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite

from colocam.errors import ArgumentError
from colocam.types import Image


def evenly(length: int, count: int) -> list[int]:
    """At most ``count`` different indices of ``length``, at even distances: the middles of equal parts."""
    if length <= count:
        return list(range(length))
    return [int((i + 0.5) * length / count) for i in range(count)]


@dataclass(frozen=True, slots=True)
class DecodedFrame:
    """A frame that is not converted to RGB yet.

    Attributes:
        index: index in its video, from 0.
        pts: presentation time in seconds.
        image: converts it.
    """

    index: int
    pts: float
    image: Callable[[], Image]


MAX_FPS = 1_000_000
DIGITS = 18
"""Longest index of a frame; Python refuses to convert thousands of digits."""


@dataclass(frozen=True, slots=True)
class FrameChoice:
    """A choice of frames; each keeps its index and its time in the video.

    Attributes:
        every: process every N-th frame, beginning with the first of the range.
        fps: process about this many frames per second: those nearest to the times k / fps after the first frame of the
            range, none of them twice. Not together with ``every``.
        start: first presentation time, in seconds as the video states it and as the localization table lists it.
        end: presentation time to stop at (exclusive).
        frames: first index and index to stop at (exclusive); None for an open end.
    """

    every: int = 1
    fps: float | None = None
    start: float | None = None
    end: float | None = None
    frames: tuple[int | None, int | None] = (None, None)

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ArgumentError("every", f"must be 1 or more frames, got {self.every}")
        if self.fps is not None and not (isfinite(self.fps) and self.fps > 0):
            raise ArgumentError("fps", f"must be more than 0 frames per second, got {self.fps:g}")
        if self.fps is not None and self.fps > MAX_FPS:
            raise ArgumentError("fps", f"must be at most {MAX_FPS} frames per second, got {self.fps:g}")
        if self.fps is not None and self.every != 1:
            raise ArgumentError("fps", "and `every` cannot be used together: give one of them")
        for name, seconds in (("start", self.start), ("end", self.end)):
            if seconds is not None and not isfinite(seconds):
                raise ArgumentError(name, f"must be a finite number of seconds, got {seconds:g}")
        if self.start is not None and self.end is not None and not self.start < self.end:
            raise ArgumentError("end", f"must be after the start at {self.start:g} s, got {self.end:g} s")
        first, stop = self.frames
        if min(first or 0, stop or 0) < 0 or (stop is not None and stop <= (first or 0)):
            raise ArgumentError("frames", f"must be A:B with 0 ≤ A < B, or A: or :B, got {self._range()}")

    @property
    def from_the_start(self) -> bool:
        """Whether the first frame of the video is the first chosen, whatever its time."""
        return self.start is None and not self.frames[0]

    def __call__(self, frames: Iterable[DecodedFrame]) -> Iterator[DecodedFrame]:
        """Yield the chosen ones of all frames of a video, in order; with ``fps`` each when the next one comes."""
        inside = self._inside(frames)
        return every_nth(inside, self.every) if self.fps is None else nearest(inside, self.fps)

    def estimate(self, total: int, rate: float) -> int:
        """Estimate how many of ``total`` frames (0: unknown) at ``rate`` per second are chosen; 0 for unknown."""
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
        parts += [f"with an index in {self._range()}"] if self.frames != (None, None) else []
        return " and ".join(parts) or "at all"

    def _range(self) -> str:
        return ":".join("" if one is None else str(one) for one in self.frames)

    def _inside(self, frames: Iterable[DecodedFrame]) -> Iterator[DecodedFrame]:
        first, stop = self.frames
        for frame in frames:
            if (self.end is not None and frame.pts >= self.end) or (stop is not None and frame.index >= stop):
                return
            if frame.index >= (first or 0) and (self.start is None or frame.pts >= self.start):
                yield frame
            if stop is not None and frame.index == stop - 1:  # do not wait for another frame of a camera
                return


ALL = FrameChoice()


def parse_frames(text: str) -> tuple[int | None, int | None]:
    """Parse ``A:B``, ``A:`` or ``:B``."""
    parts = text.split(":")
    if len(parts) != 2 or not all(part == "" or (part.isascii() and part.isdigit()) for part in parts):
        raise ArgumentError("frames", f"must be A:B, the frames from A up to but not including B, got {text}")
    if max(map(len, parts)) > DIGITS:
        raise ArgumentError("frames", f"must be A:B with at most {DIGITS} digits each, got {text[:DIGITS]}…")
    first, stop = (int(part) if part else None for part in parts)
    return first, stop


def every_nth(frames: Iterable[DecodedFrame], step: int) -> Iterator[DecodedFrame]:
    """The first frame, and of each further ``step`` indices the first frame that exists."""
    first, last = 0, -1
    for frame in frames:
        if last < 0:
            first = frame.index
        step_index = (frame.index - first) // step
        if step_index > last:
            last = step_index
            yield frame


def nearest(frames: Iterable[DecodedFrame], fps: float) -> Iterator[DecodedFrame]:
    """The frames nearest to t₀ + k / fps, where t₀ is the time of the first; of two equally near frames the earlier.

    No frame is yielded twice. A frame is nearest to the times between the midpoint to the frame before it (exclusive)
    and the midpoint to the frame after it. Where the times of a video jump back, t₀ is set again.
    """
    held: DecodedFrame | None = None
    origin = middle = 0.0
    passed = -1  # index k of the last time that has a frame

    def last_of_a_run() -> list[DecodedFrame]:
        """The held frame, if it is nearest to a time; the interval after it counts as long as the one before it."""
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
