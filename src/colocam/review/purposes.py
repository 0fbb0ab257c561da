"""Which frames to list, by purpose: those that are probably wrong, or those to learn from.

| purpose    | order                                                                                        |
|------------|----------------------------------------------------------------------------------------------|
| `errors`   | by doubt, sparsely within a doubtful part of a video (:mod:`colocam.review.queue`)           |
| `learning` | at even distances over all videos, the middle of each first; doubtful frames teach less      |
|            | (docs/method/corrections.md)                                                                 |
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from colocam.errors import ArgumentError
from colocam.review.queue import queue
from colocam.types import Float64Array
from colocam.video.frame_choice import evenly

Integers = npt.NDArray[np.int64]
Order = Callable[[Float64Array, Integers, Float64Array, int, float], list[int]]
"""(doubt (n,), video (n,), pts (n,), most, apart) of frames sorted by video and time → indices in order."""


def evenly_spread(doubt: Float64Array, video: Integers, pts: Float64Array, most: int, apart: float) -> list[int]:  # noqa: ARG001 - all orders are called alike
    """Order frames at even distances: one of each video, then two, and so on, whatever their doubt."""
    videos = np.split(np.arange(len(video)), np.flatnonzero(np.diff(video)) + 1)  # video is sorted
    counts = shares(np.array([len(rows) for rows in videos]), most)
    order: list[tuple[int, int]] = []
    for rows, count in zip(videos, counts.tolist(), strict=True):
        places = rows[evenly(len(rows), count)].tolist()
        middle_first = sorted(range(count), key=lambda at: abs(2 * at + 1 - count))
        order += [(rank, places[at]) for rank, at in enumerate(middle_first)]
    return [row for _, row in sorted(order)]


def shares(lengths: Integers, most: int) -> Integers:
    """Divide ``most`` frames among videos of so many frames as equally as possible.

    Where not all videos can have one more, those at even distances in the list have it.
    """
    counts = np.zeros_like(lengths)
    while left := min(most, int(lengths.sum())) - int(counts.sum()):
        unfilled = np.flatnonzero(counts < lengths)
        if each := left // len(unfilled):
            counts[unfilled] = np.minimum(counts[unfilled] + each, lengths[unfilled])
        else:
            counts[unfilled[evenly(len(unfilled), left)]] += 1
    return counts


PURPOSES: dict[str, Order] = {"errors": queue, "learning": evenly_spread}
"""Orders by the name that ``colocam review --for`` takes."""


def find_purpose(name: str) -> Order:
    """The order of that name."""
    if name not in PURPOSES:
        raise ArgumentError("purpose", f"must be one of {', '.join(PURPOSES)}, got {name!r}")
    return PURPOSES[name]
