"""Order of the frames to check: by doubt, which counts less near frames that are already listed."""

from heapq import heapify, heappop, heappush
from math import exp

import numpy as np
import numpy.typing as npt

APART = 0.5
"""Seconds within which a listed frame lowers the priority of others."""
LESS = 0.5
"""Share of its doubt that a frame loses right beside a listed one."""


def queue(
    doubt: npt.NDArray[np.float64],
    video: npt.NDArray[np.int64],
    pts: npt.NDArray[np.float64],
    most: int,
    apart: float = APART,
) -> list[int]:
    """Order at most ``most`` frames by doubt, reduced near frames that are already chosen.

    The factor is 1 − ``LESS`` · exp(−½ (Δt / apart)²), where Δt is the time to the nearest chosen frame of the video.
    So a doubtful part of a video is sampled sparsely first.

    Args:
        doubt: (n,) of frames sorted by video and time.
        video: (n,).
        pts: (n,) seconds, rising within a video.
        most: number of frames to return.
        apart: seconds; 0 orders by doubt alone.

    Returns:
        Indices of the chosen frames; of equal doubts the earlier frame comes first.
    """
    whole = doubt.astype(np.float64).tolist()
    left = whole.copy()
    videos, times = video.tolist(), pts.tolist()
    heap = [(-value, at) for at, value in enumerate(left)]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < most:
        value, at = heappop(heap)
        if -value > left[at]:  # reduced since it was pushed
            heappush(heap, (-left[at], at))
            continue
        chosen.append(at)
        for step in (-1, 1):
            other = at + step
            while 0 <= other < len(left) and videos[other] == videos[at]:
                away = abs(times[other] - times[at])
                if away > 4 * apart:
                    break
                if apart:
                    left[other] = min(left[other], whole[other] * (1 - LESS * exp(-0.5 * (away / apart) ** 2)))
                other += step
    return chosen
