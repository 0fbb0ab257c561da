"""The threshold ``tags-only``: chosen from the maps alone, without any box."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.boxes import level_histogram

UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


def tags_only_threshold(maps: npt.NDArray[np.uint8]) -> float:
    """τ = mean of many maps (N, H, W), each relative to its maximum: foreground is above the average.

    Otsu's threshold, which the seeds use, is too high for boxes: it excludes the weak parts of an object
    (docs/method/tags-only.md).
    """
    return threshold_of_levels(level_histogram(torch.from_numpy(maps), relative=True).sum(0))


def threshold_of_levels(counts: Tensor) -> float:
    """``tags_only_threshold`` from a histogram (256,) of levels relative to the maximum of each map."""
    if (counts > 0).sum() < 2:
        return UNDECIDED
    pixels = counts.double()
    return float((pixels * torch.arange(256)).sum() / pixels.sum()) / 255
