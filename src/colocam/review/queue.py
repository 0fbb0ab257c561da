"""In which order should a person look at frames: the most doubtful first, but not its neighbours right after it."""

from heapq import heapify, heappop, heappush
from math import exp

import numpy as np
import numpy.typing as npt

APART = 0.25
"""Seconds: who has looked at a frame learns little from others within this time of it."""


def queue(
    doubt: npt.NDArray[np.float64],
    video: npt.NDArray[np.int64],
    pts: npt.NDArray[np.float64],
    most: int,
    apart: float = APART,
) -> list[int]:
    """Order at most ``most`` frames by doubt; each chosen one lessens the doubt of those near it.

    The factor is 1 − exp(−½ (Δt / apart)²), once for each chosen frame of the same video, so that a neighbour comes
    later, and a whole doubtful stretch is seen here and there before it is seen frame by frame.

    Args:
        doubt: (n,) of frames sorted by video and time.
        video: (n,).
        pts: (n,) seconds, rising within a video.
        most: how many to order.
        apart: seconds; 0 orders by doubt alone.

    Returns:
        Places of the chosen frames; of equal doubts the earlier comes first.
    """
    left = doubt.astype(np.float64).tolist()
    videos, times = video.tolist(), pts.tolist()
    heap = [(-value, place) for place, value in enumerate(left)]
    heapify(heap)
    chosen: list[int] = []
    done = [False] * len(left)
    while heap and len(chosen) < most:
        value, place = heappop(heap)
        if -value > left[place]:  # lessened since it was put there
            heappush(heap, (-left[place], place))
            continue
        chosen.append(place)
        done[place] = True
        for step in (-1, 1):
            other = place + step
            while 0 <= other < len(left) and videos[other] == videos[place]:
                away = abs(times[other] - times[place])
                if away > 4 * apart:
                    break
                if not done[other]:
                    left[other] *= 1 - exp(-0.5 * (away / apart) ** 2) if apart else 1.0
                other += step
    return chosen
