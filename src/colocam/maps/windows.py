"""Windows: the consecutive frames of one shot that are post-processed together.

A window begins at each shot boundary and after every :data:`WINDOW` frames of a shot. The colour mean "clip" and the
class that focus uses are computed over a window. Windows depend on the frames alone, never on the batch size or the
device, so that the same video gives the same maps everywhere; and memory does not grow with the length of a shot.
"""

import numpy as np
import numpy.typing as npt

WINDOW = 32
"""Frames of a window at most."""


def window_starts(cuts: npt.NDArray[np.bool_], position: int = 0) -> tuple[npt.NDArray[np.bool_], int]:
    """Which frames begin a window.

    Args:
        cuts: (T,) whether a frame begins a new shot.
        position: frames of the present shot that came before these T frames; 0: a shot begins here.

    Returns:
        (T,) bool, and the position after the last frame.
    """
    index = np.arange(len(cuts))
    shot = np.maximum.accumulate(np.where(cuts, index, -position)) if len(cuts) else index
    frames_into_shot = index - shot
    after = int(frames_into_shot[-1]) + 1 if len(cuts) else position
    return frames_into_shot % WINDOW == 0, after
