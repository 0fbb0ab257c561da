"""Choices that need no box: the threshold of a set of maps, and how good maps are, from tags and maps alone."""

import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import level_histogram, pooled_threshold

UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


def tags_only_threshold(maps: npt.NDArray[np.uint8]) -> float:
    """τ that splits the pooled levels of many maps (N, H, W) best into two classes (Otsu), relative to each maximum.

    One map may have no clear foreground; over all frames of a data set the two modes stand out.
    """
    counts = level_histogram(torch.from_numpy(maps), relative=True).sum(0)
    threshold = pooled_threshold(counts)
    return UNDECIDED if threshold is None else threshold
