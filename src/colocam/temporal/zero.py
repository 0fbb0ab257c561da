"""What each sign of an object is worth nothing at in a shot, from the shot's own frames.

On water, a decoder is surer of a foreground than elsewhere even if nothing is there; in a room, some class fits a
little. If the evidence of a shot's frames falls into two groups far apart, the lower one is that of its empty frames,
and zero lies just above it. If it does not, nothing is known: the object may be in every frame.
"""

import numpy as np

from colocam.types import Float64Array

APART, FAR_APART = 2.5, 3.5
"""Distances of the two groups' means: up to the first, zero stays; from the second, it moves all the way."""
LEAST, MOST = -0.5, 1.0
"""How far zero moves at most, down and up."""
FEWEST = 8
"""A shot of fewer frames says nothing."""
EVERY = 4
"""Zeros are computed again with every so many frames, which takes a third of the time."""
LOWEST, HIGHEST, BIN = -4.0, 8.0, 0.2
"""Range of the evidence that is told apart, and the width of a bin: what is kept of a shot does not grow."""
CENTERS = np.arange(LOWEST + BIN / 2, HIGHEST, BIN)
BINS = np.arange(len(CENTERS))
TINY = 1e-9


class ShotZeros:
    """Collects the evidence of a shot's frames, of several signs; the order of the frames does not matter.

    Args:
        margins: (signs,) how far zero lies above the mean of the lower group, in log-odds.

    Attributes:
        frames: so far.
        below: (signs, bins) frames of the shot in a bin or below it.
        zeros: (signs,) evidence that means nothing in this shot, from :data:`LEAST` to :data:`MOST`.
    """

    def __init__(self, margins: Float64Array) -> None:
        self.frames = 0
        self.below = np.zeros((len(margins), len(CENTERS)))
        self._margins = margins
        self.zeros = np.zeros(len(margins))

    def add(self, evidence: Float64Array) -> None:
        """Add a frame by its evidence (signs,), log-odds."""
        bins = ((evidence - LOWEST) / BIN).clip(0, len(CENTERS) - 1).astype(np.int64)
        self.frames += 1
        self.below += bins[:, None] <= BINS
        if self.frames >= FEWEST and self.frames % EVERY == 0:
            low, high = two_groups(self.below)
            share = ((high - low - APART) / (FAR_APART - APART)).clip(0, 1)
            self.zeros = share * (low + self._margins).clip(LEAST, MOST)


def two_groups(below: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Means (signs,) of the lower and of the upper group of frames, split where they differ most (Otsu's method).

    Both are the same if all frames are in one bin.

    Args:
        below: (signs, bins) frames in a bin or below it, as many for each sign.
    """
    # With n(x) frames up to x, the sum of their values is x · n(x) less the integral of n.
    sums = CENTERS * below - BIN * (below.cumsum(1) - below)
    frames, total = below[:, -1:], sums[:, -1:]
    between = (sums * frames - total * below) ** 2 / np.maximum(below * (frames - below), 1)
    signs, split = np.arange(len(below)), between.argmax(1)
    lower = below[signs, split]
    sum_below = sums[signs, split]
    mean = (total / frames)[:, 0]
    apart = between[signs, split] > TINY
    low = np.where(apart, sum_below / np.maximum(lower, 1), mean)
    high = np.where(apart, (total[:, 0] - sum_below) / np.maximum(frames[:, 0] - lower, 1), mean)
    return low, high
