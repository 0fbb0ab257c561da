"""The threshold of a chooser of boxes, chosen on frames that have true boxes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import Numbers
from colocam.metrics.bootstrap import Frames
from colocam.metrics.hits import right_boxes
from colocam.metrics.protocols import best_threshold
from colocam.temporal.path import boxes_of_shots
from colocam.types import Levels

GRID: npt.NDArray[np.float64] = np.geomspace(0.08, 0.5, 13)
"""Few, because each takes a pass over all contours, and neighbours differ little: a chooser looks around τ itself."""


def chooser_threshold(
    maps: Levels, boxes: Sequence[Numbers], frames: Frames, chooser: str, clips: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """τ of :data:`GRID` with the best CorLoc, mean over classes, and that CorLoc in percent.

    Args:
        maps: (N, S, S) in 8 bits, in order.
        boxes: for each map its true boxes (k, 4), k ≥ 1, in map pixels.
        frames: tags and videos of the frames.
        chooser: name in ``CHOOSERS``.
        clips: (N,) clip of each frame.
    """
    hits = np.stack([_hits(maps, boxes, float(threshold), chooser, clips) for threshold in GRID], axis=1)
    means = np.nanmean(frames.class_means(hits), axis=0)
    return best_threshold(hits, frames, GRID), 100 * float(means.max())


def _hits(
    maps: Levels, boxes: Sequence[Numbers], threshold: float, chooser: str, clips: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    chosen, found = boxes_of_shots(maps, threshold, chooser, clips)
    return right_boxes(chosen, found, boxes)
