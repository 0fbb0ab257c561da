"""Thresholds that follow from maps alone: Otsu's of each map, and the pooled mean of maps relative to their maximum."""

from fractions import Fraction

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.filters import threshold_otsu

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


def peak(generator: torch.Generator, side: int = 48) -> torch.Tensor:
    grid = torch.linspace(-1, 1, side)
    x, y, width = torch.rand(3, generator=generator) * 0.8
    blob = torch.exp(-((grid[:, None] - y) ** 2 + (grid - x) ** 2) / (0.05 + width))
    return (blob + 0.1 * torch.rand(side, side, generator=generator)).clamp(0, 1)


def test_same_threshold_as_two_public_implementations():
    generator = torch.Generator().manual_seed(3)
    maps = torch.stack([peak(generator) for _ in range(24)])
    levels, defined = otsu_levels(maps)
    assert defined.all()
    for map_, level in zip((255 * maps).to(torch.uint8).numpy(), levels.tolist(), strict=True):
        assert level == threshold_otsu(map_)
        assert level == cv2.threshold(map_, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)[0]


@settings(max_examples=80, deadline=None)
@given(arrays(np.uint8, (3, 5, 4), elements=st.sampled_from([0, 1, 2, 3, 100, 101, 254, 255])))
def test_first_exact_maximum_of_the_variance(maps):
    levels, defined = otsu_levels(torch.from_numpy(maps))
    for map_, level, ok in zip(maps, levels.tolist(), defined.tolist(), strict=True):
        expected = exact_otsu(np.bincount(map_.ravel(), minlength=256).tolist())
        assert ok == (expected is not None)
        assert level == (map_.flat[0] if expected is None else expected)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_map_has_no_threshold(value):
    maps = torch.stack([torch.full((6, 7), value), torch.linspace(0, 1, 42).view(6, 7)])
    levels, defined = otsu_levels(maps)
    assert defined.tolist() == [False, True]
    assert levels[0] == int(255 * value)
    assert not (maps[0] * 255 > levels[0] + 1).any()


def test_of_equal_thresholds_the_lowest_and_two_levels_are_parted_at_the_lower_one():
    maps = torch.tensor([[10, 128, 246], [40, 40, 200]], dtype=torch.uint8).repeat(1, 5).view(2, 3, 5)
    assert otsu_levels(maps)[0].tolist() == [10, 40]


def two_modes(seed, maximum=255):
    rng = np.random.default_rng(seed)
    maps = rng.integers(0, 30, (6, 20, 20))
    maps[:, 5:12, 4:15] = rng.integers(150, 256, (6, 7, 11))
    maps[:, 5, 4] = 255
    return (maps * maximum // 255).astype(np.uint8)


def test_it_splits_two_modes():
    maps = two_modes(0)
    threshold = tags_only_threshold(maps)
    assert ((maps > int(threshold * 255)) == (maps >= 150)).all()


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


def test_a_faint_limb_is_kept_that_otsu_cuts_off():
    maps = np.zeros((1, 40, 40), np.uint8)
    maps[:, 10:25, 10:30] = 240
    maps[:, 25:32, 10:30] = 70
    assert tags_only_threshold(maps) * 255 < 70
    assert threshold_otsu(maps) >= 70


def test_constant_maps_decide_nothing():
    blank = np.zeros((3, 20, 20), np.uint8)
    assert tags_only_threshold(blank) == UNDECIDED
    assert tags_only_threshold(blank + 7) == UNDECIDED
