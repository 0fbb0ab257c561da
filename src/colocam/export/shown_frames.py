"""Which frame of a video a player shows that counts frames of a constant rate."""

import numpy as np
import numpy.typing as npt

from colocam.export.labels import LabelledVideo


def shown_at(video: LabelledVideo, rate: float) -> npt.NDArray[np.int64]:
    """Index, from 0, at which the frame of each row is first shown at ``rate`` frames per second.

    The player's frame k is what the video shows between k / rate and (k + 1) / rate.
    """
    start = video.rows.pts[0] - (video.rows.frame[0] / float(video.source.fps))
    index: npt.NDArray[np.int64] = np.ceil((video.rows.pts - start) * rate - 0.5).astype(np.int64)
    return index.clip(0)
