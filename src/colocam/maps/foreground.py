"""How sure a decoder is that a frame shows a foreground at all: the mean of the highest pixels of its map.

The map is taken as the network gave it. Color mean and focus scale it to its maximum, or move it within the frame.
Sums are of whole levels, so the result depends on nothing but the map, on every device.
"""

from typing import TYPE_CHECKING

import cv2
import numpy as np

from colocam.boxes.quantize import to_8bit
from colocam.types import Float32Array, Levels

if TYPE_CHECKING:
    from torch import Tensor

HIGHEST = 0.003
"""Share of a map's pixels that count as its highest. Up to 0.02 give the same results, but not with a prior decoder,
whose maps fall off faster around their peak."""
LEVELS = np.arange(255.0, -1.0, -1.0)
"""Of a map, from the highest down."""


def foreground_of(maps: "Tensor") -> "Tensor":
    """(B,) float32 in 0–1: the mean of the highest 0.3 % of each map; the host does not wait for a GPU.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
    """
    levels = to_8bit(maps).flatten(1)
    count = _count(levels.shape[1])
    return (levels.topk(count, dim=1, sorted=False).values.sum(1).double() / (255 * count)).float()


def array_foreground_of(maps: Float32Array | Levels) -> Float32Array:
    """Twin of :func:`foreground_of` without torch."""
    levels = np.ascontiguousarray(to_8bit(maps))
    count = _count(levels[0].size) if len(levels) else 1
    counts = [cv2.calcHist([one], [0], None, [256], [0, 256]).reshape(256)[::-1] for one in levels]
    above = np.minimum(np.array(counts, np.int64).reshape(-1, 256).cumsum(1), count)  # from the highest level down
    mean: Float32Array = (np.diff(above, axis=1, prepend=0) @ LEVELS / (255 * count)).astype(np.float32)
    return mean


def _count(pixels: int) -> int:
    return max(1, int(HIGHEST * pixels))
