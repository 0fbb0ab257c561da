"""The choice that needs no box: a threshold from the maps alone."""

import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import level_histogram

UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


def tags_only_threshold(maps: npt.NDArray[np.uint8]) -> float:
    """τ = mean of many maps (N, H, W), each relative to its maximum: foreground is what is brighter than the average.

    One map may have no clear foreground; over all frames of a data set it stands out. Otsu's threshold, which the seeds
    use, is too high for boxes: it leaves out the faint parts of an object (docs/tags-only.md).
    """
    counts = level_histogram(torch.from_numpy(maps), relative=True).sum(0).double()
    if (counts > 0).sum() < 2:
        return UNDECIDED
    return float((counts * torch.arange(256)).sum() / counts.sum()) / 255
