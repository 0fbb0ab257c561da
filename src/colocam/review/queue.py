"""In which order should a person look at frames: the most doubtful first, but not its neighbours right after it."""

from heapq import heapify, heappop, heappush
from math import exp

import numpy as np
import numpy.typing as npt

APART = 0.5
"""Seconds: who has looked at a frame learns less from others within this time of it."""
LESS = 0.5
"""Part of its doubt that the nearest neighbour of a chosen frame loses."""


def queue(
    doubt: npt.NDArray[np.float64],
    video: npt.NDArray[np.int64],
    pts: npt.NDArray[np.float64],
    most: int,
    apart: float = APART,
) -> list[int]:
    """Order at most ``most`` frames by doubt, which counts less near those already chosen.

    The factor is 1 − ``LESS`` · exp(−½ (Δt / apart)²), Δt being the time to the nearest chosen frame of its video: a
    doubtful stretch is seen here and there before it is seen frame by frame.

    Args:
        doubt: (n,) of frames sorted by video and time.
        video: (n,).
        pts: (n,) seconds, rising within a video.
        most: how many to order.
        apart: seconds; 0 orders by doubt alone.

    Returns:
        Places of the chosen frames; of equal doubts the earlier comes first.
    """
    whole = doubt.astype(np.float64).tolist()
    left = whole.copy()
    videos, times = video.tolist(), pts.tolist()
    heap = [(-value, place) for place, value in enumerate(left)]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < most:
        value, place = heappop(heap)
        if -value > left[place]:  # lessened since it was put there
            heappush(heap, (-left[place], place))
            continue
        chosen.append(place)
        for step in (-1, 1):
            other = place + step
            while 0 <= other < len(left) and videos[other] == videos[place]:
                away = abs(times[other] - times[place])
                if away > 4 * apart:
                    break
                if apart:
                    left[other] = min(left[other], whole[other] * (1 - LESS * exp(-0.5 * (away / apart) ** 2)))
                other += step
    return chosen
