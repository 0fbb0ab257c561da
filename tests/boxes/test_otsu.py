"""Thresholds that follow from maps alone: Otsu's of each map, and the pooled mean of maps relative to their maximum."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from colocam.boxes import otsu_levels
from colocam.boxes.quantize import UNDECIDED, tags_only_threshold


def exact_otsu(counts: list[int]) -> int | None:
    """First level of largest between-class variance, in whole numbers and fractions; None without two levels."""
    best, chosen = Fraction(-1), None
    total, mass = sum(counts), sum(i * c for i, c in enumerate(counts))
    below = below_mass = 0
    for level, count in enumerate(counts):
        below, below_mass = below + count, below_mass + level * count
        if not 0 < below < total:
            continue
        variance = Fraction((mass * below - below_mass * total) ** 2, below * (total - below))
        if variance > best:
            best, chosen = variance, level
    return chosen


@settings(max_examples=80, deadline=None)
@given(arrays(np.uint8, (3, 5, 4), elements=st.sampled_from([0, 1, 2, 3, 100, 101, 254, 255])))
def test_first_exact_maximum_of_the_variance(maps):
    levels, defined = otsu_levels(torch.from_numpy(maps))
    for map_, level, ok in zip(maps, levels.tolist(), defined.tolist(), strict=True):
        expected = exact_otsu(np.bincount(map_.ravel(), minlength=256).tolist())
        assert ok == (expected is not None)
        assert level == (map_.flat[0] if expected is None else expected)


def two_modes(seed, maximum=255):
    rng = np.random.default_rng(seed)
    maps = rng.integers(0, 30, (6, 20, 20))
    maps[:, 5:12, 4:15] = rng.integers(150, 256, (6, 7, 11))
    maps[:, 5, 4] = 255
    return (maps * maximum // 255).astype(np.uint8)


@given(st.integers(0, 1000))
def test_it_is_the_mean_of_maps_that_reach_the_top(seed):
    maps = two_modes(seed)
    assert tags_only_threshold(maps) == pytest.approx(maps.mean() / 255, abs=1e-9)


def test_it_is_relative_to_each_maps_maximum():
    dim = two_modes(0, maximum=128)
    mixed = np.concatenate([two_modes(0), dim])
    assert abs(tags_only_threshold(mixed) - tags_only_threshold(two_modes(0))) < 0.02
    for levels in (dim, two_modes(0)):
        foreground = levels > int(tags_only_threshold(mixed) * levels.max())
        assert foreground[:, 5:12, 4:15].all()
        assert foreground.mean() == 7 * 11 / 400


def test_constant_maps_decide_nothing():
    blank = np.zeros((3, 20, 20), np.uint8)
    assert tags_only_threshold(blank) == UNDECIDED
    assert tags_only_threshold(blank + 7) == UNDECIDED
