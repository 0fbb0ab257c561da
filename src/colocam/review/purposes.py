"""Which frames to list, by purpose: those that are probably wrong, those that teach, or frames at even distances.

| purpose    | order                                                                                              |
|------------|----------------------------------------------------------------------------------------------------|
| `errors`   | by doubt, sparsely within a doubtful part of a video (:mod:`colocam.review.queue`)                    |
| `learning` | as `errors` within a video; the k-th frame of a video counts (base + doubt) / k, so all videos appear |
| `even`     | the middle of each video first, then frames at even distances                                        |
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from colocam.errors import ArgumentError
from colocam.review.queue import queue
from colocam.types import Float64Array

Integers = npt.NDArray[np.int64]
Order = Callable[[Float64Array, Integers, Float64Array, int, float], list[int]]
"""(doubt (n,), video (n,), pts (n,), most, apart) of frames sorted by video and time → indices in order."""

BASE = 0.5
"""Value of a frame without any doubt for learning: a right box that is confirmed teaches, too."""


def for_learning(doubt: Float64Array, video: Integers, pts: Float64Array, most: int, apart: float) -> list[int]:
    """Order frames that teach: doubtful ones, of many videos, far from each other."""
    order: list[int] = []
    value: list[float] = []
    for rows in _by_video(video):
        chosen = queue(doubt[rows], video[rows], pts[rows], min(most, len(rows)), apart)
        order += rows[chosen].tolist()
        value += [(BASE + float(doubt[rows[at]])) / place for place, at in enumerate(chosen, start=1)]
    best = np.argsort(-np.array(value), kind="stable")[:most]
    return [order[at] for at in best.tolist()]


def evenly_spread(doubt: Float64Array, video: Integers, pts: Float64Array, most: int, apart: float) -> list[int]:  # noqa: ARG001 - all orders are called alike
    """Order frames at even distances: one of each video, then two, and so on, whatever their doubt."""
    videos = _by_video(video)
    counts = np.full(len(videos), most // len(videos))
    counts[: most % len(videos)] += 1
    order: list[tuple[int, int]] = []
    for rows, count in zip(videos, counts.tolist(), strict=True):
        places = np.unique(((np.arange(min(count, len(rows))) + 0.5) * len(rows) / max(count, 1)).astype(int))
        spread = sorted(range(len(places)), key=lambda at: abs(2 * at + 1 - len(places)))  # the middle first
        order += [(rank, int(rows[places[at]])) for rank, at in enumerate(spread)]
    return [row for _, row in sorted(order)][:most]


PURPOSES: dict[str, Order] = {"errors": queue, "learning": for_learning, "even": evenly_spread}
"""Orders by the name that ``colocam review --for`` takes."""


def find_purpose(name: str) -> Order:
    """The order of that name."""
    if name not in PURPOSES:
        raise ArgumentError("purpose", f"must be one of {', '.join(PURPOSES)}, got {name!r}")
    return PURPOSES[name]


def _by_video(video: Integers) -> list[Integers]:
    """Rows of each video; ``video`` is sorted."""
    return np.split(np.arange(len(video)), np.flatnonzero(np.diff(video)) + 1)
