"""Li's threshold: against brute force over all levels, and against scikit-image."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from skimage.filters import threshold_li

from colocam.boxes import level_histogram, li_of_histogram, otsu_of_histogram


def cross_entropy(levels, t):
    """Σ level · log(level / class mean), up to the part that does not depend on t."""
    total = 0.0
    for part in (levels[levels <= t], levels[levels > t]):
        if part.sum() > 0:
            total -= part.sum() * np.log(part.mean())
    return total


@given(st.lists(st.integers(0, 255), min_size=2, max_size=40))
def test_no_other_level_has_less_cross_entropy(levels):
    levels = np.array(levels, np.float64)
    counts = torch.bincount(torch.from_numpy(levels).long(), minlength=256)
    level, defined = li_of_histogram(counts)
    assert bool(defined) == (len(np.unique(levels)) > 1)
    if defined:
        candidates = [t for t in range(256) if levels.min() <= t < levels.max()]
        best = min(cross_entropy(levels, t) for t in candidates)
        assert np.isclose(cross_entropy(levels, int(level)), best, rtol=1e-9, atol=1e-6)
        assert levels.min() <= int(level) < levels.max()


def test_on_peaked_maps_it_agrees_with_scikit_image_and_lies_below_otsu():
    y, x = np.mgrid[:64, :64]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        (cx, cy), width = rng.uniform(16, 48, 2), rng.uniform(5, 14)
        peak = np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2)) + 0.05 * rng.random((64, 64))
        levels = (255 * peak / peak.max()).astype(np.uint8)
        counts = level_histogram(torch.from_numpy(levels)[None])[0]
        level, _ = li_of_histogram(counts)
        assert abs(int(level) - threshold_li(levels)) <= 2
        assert int(level) < int(otsu_of_histogram(counts)[0])


def test_batches_and_constant_maps():
    counts = torch.zeros(3, 256, dtype=torch.int64)
    counts[0, 7] = 9
    counts[1, [3, 90]] = 5
    levels, defined = li_of_histogram(counts)
    assert defined.tolist() == [False, True, False]
    assert levels[0] == 0
    assert 3 <= levels[1] < 90
