"""The published box at every threshold at once.

``boxes_at_levels`` gives the box of ``largest_boxes`` for each of the 256 masks ``levels > t``. In C it takes one flood
fill and one component tree per map, in time nearly linear in the number of pixels (``native/levels.h``), a tenth of
the time of a contour search for each level, which is what runs without C.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import largest_box
from colocam.boxes.quantize import Maps, checked_levels
from colocam.native import kernels
from colocam.types import Levels
from colocam.utils.device import threads

Boxes = npt.NDArray[np.int16]


def boxes_at_levels(maps: Maps) -> Boxes:
    """Boxes of the largest contour of each mask ``levels > t`` with ``levels = ⌊255·map⌋``, for t = 0 … 255.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.

    Returns:
        (B, 256, 4) x1, y1, x2, y2 in map pixels as ``largest_boxes`` has them; 0, 0, 0, 0 from the map's maximum on,
        where no pixel is left.
    """
    levels = checked_levels(maps)
    boxes = np.zeros((len(levels), 256, 4), np.int16)
    sweep = sweep_by_opencv if kernels is None else kernels.sweep_levels
    workers = max(1, min(threads(), len(levels)))
    with ThreadPoolExecutor(workers) as pool:  # C and OpenCV run without Python's global lock
        jobs = zip(np.array_split(levels, workers), np.array_split(boxes, workers), strict=True)
        for job in [pool.submit(sweep, *job) for job in jobs]:
            job.result()
    return boxes


def sweep_by_opencv(levels: Levels, boxes: Boxes) -> None:
    """Fill ``boxes`` (B, 256, 4), zeros before, from ``levels`` (B, H, W)."""
    for level, own in zip(levels, boxes, strict=True):
        for cut in range(int(level.max())):
            own[cut] = largest_box(level, cut)
