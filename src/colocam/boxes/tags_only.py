"""The threshold ``tags-only``: chosen from the maps alone, without any box."""

import numpy as np
import numpy.typing as npt

from colocam.types import Levels

Counts = npt.NDArray[np.int64]

UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


def tags_only_threshold(maps: Levels) -> float:
    """τ = mean of many maps (N, H, W), each relative to its maximum: foreground is above the average.

    Otsu's threshold, which the seeds use, is too high for boxes: it excludes the weak parts of an object
    (docs/method/tags-only.md).
    """
    return threshold_of_levels(sum((relative_levels(one) for one in maps), np.zeros(256, np.int64)))


def relative_levels(level: Levels) -> Counts:
    """(256,) pixels at each level of one map (H, W), scaled so that its maximum becomes 255; zeros stay zeros."""
    highest = max(int(level.max(initial=0)), 1)
    counts: Counts = np.zeros(256, np.int64)
    np.add.at(counts, np.minimum(255 * np.arange(256) // highest, 255), np.bincount(level.reshape(-1), minlength=256))
    return counts


def threshold_of_levels(counts: Counts) -> float:
    """``tags_only_threshold`` from a histogram (256,) of levels relative to the maximum of each map."""
    if (counts > 0).sum() < 2:
        return UNDECIDED
    return float(counts @ np.arange(256)) / float(counts.sum()) / 255
