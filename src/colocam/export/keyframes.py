"""Choose the few key frames from which linear interpolation restores all boxes."""

import numpy as np
import numpy.typing as npt


def sparse_keyframes(
    frames: npt.NDArray[np.int64], boxes: npt.NDArray[np.float64], tolerance: float
) -> npt.NDArray[np.int64]:
    """Choose key frames by the rule of Douglas and Peucker, with the error of each corner at its own frame.

    Args:
        frames: (n,) ascending.
        boxes: (n, 4).
        tolerance: pixels by which an interpolated corner may be off.

    Returns:
        Indices into ``frames``, sorted; the first and the last are among them.
    """
    keep = np.zeros(len(frames), bool)
    keep[[0, -1]] = True
    waiting = [(0, len(frames) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        inside = slice(first + 1, last)
        share = ((frames[inside] - frames[first]) / (frames[last] - frames[first]))[:, None]
        error = np.abs(boxes[first] + share * (boxes[last] - boxes[first]) - boxes[inside]).max(axis=1)
        worst = int(error.argmax())
        if error[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            waiting += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)
