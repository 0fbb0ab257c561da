"""The choice that needs no box: a threshold from the maps alone."""

import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import level_histogram, li_of_histogram

UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


def tags_only_threshold(maps: npt.NDArray[np.uint8]) -> float:
    """τ, relative to each map's maximum, that describes the pooled levels of many maps (N, H, W) best (Li).

    One map may have no clear foreground; over all frames of a data set it stands out. Otsu's threshold, which the seeds
    use, is too high for boxes: it leaves out the faint parts of an object (docs/tags-only.md). τ lies half a level
    above Li's, so that ``levels > ⌊τ·255⌋`` is exactly Li's foreground.
    """
    counts = level_histogram(torch.from_numpy(maps), relative=True).sum(0)
    level, defined = li_of_histogram(counts)
    return (float(level) + 0.5) / 255 if defined else UNDECIDED
