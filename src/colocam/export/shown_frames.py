"""Which frame of a video a player shows that counts frames of a constant rate."""

import numpy as np
import numpy.typing as npt

from colocam.export.labels import LabelledVideo

LAST = 2.0**62
"""Index at most, whatever times and rate a table states."""


def shown_at(video: LabelledVideo, rate: float) -> npt.NDArray[np.int64]:
    """Index, from 0, at which the frame of each row is first shown at ``rate`` frames per second.

    The player's frame k is what the video shows between k / rate and (k + 1) / rate.
    """
    start = video.rows.pts[0] - (video.rows.frame[0] / float(video.source.fps))
    index: npt.NDArray[np.float64] = np.ceil((video.rows.pts - start) * rate - 0.5).clip(0, LAST)
    return index.astype(np.int64)
