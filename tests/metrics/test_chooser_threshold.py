"""The threshold of a chooser against a search over the published rule."""

import numpy as np

from colocam.evaluation.metrics import Frames, box_hits
from colocam.evaluation.metrics.protocols import GRID, chooser_threshold


def test_for_the_largest_contour_it_is_the_best_of_the_grid():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :32]
    centres, widths = rng.uniform(8, 24, (12, 2)), rng.uniform(3, 7, 12)
    bumps = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * w * w)) for (a, b), w in zip(centres, widths, strict=True)]
    maps = (255 * np.stack(bumps)).astype(np.uint8)
    radii = widths * np.sqrt(2 * np.log(1 / 0.3))  # the box at τ = 0.3
    true = [np.array([[a - r, b - r, a + r, b + r]]).clip(0, 31) for (a, b), r in zip(centres, radii, strict=True)]
    frames = Frames(("cat", "dog"), np.arange(12) % 2, np.arange(12).astype(str))
    threshold, corloc = chooser_threshold(maps, true, frames, "largest", np.arange(12))
    hits = box_hits(maps, true, GRID)
    means = 100 * (hits[::2].mean(0) + hits[1::2].mean(0)) / 2
    assert corloc == means.max()
    assert threshold in GRID[means == means.max()]
    assert means[GRID < 0.09].max() < corloc  # the grid does tell thresholds apart
