from fractions import Fraction

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.filters import threshold_otsu

from colocam.boxes import level_histogram, otsu_levels, otsu_of_histogram


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


def test_two_levels_are_parted_at_the_lower_one():
    maps = torch.full((1, 4, 4), 40, dtype=torch.uint8)
    maps[0, 1:3, 1:3] = 200
    levels, _ = otsu_levels(maps)
    assert levels.item() == 40
    assert torch.equal(maps > levels[:, None, None], maps == 200)


def test_mirrored_histogram_takes_the_lower_of_two_equal_thresholds():
    counts = torch.zeros(256, dtype=torch.int64)
    counts[[10, 128, 246]] = 77_777
    level, defined = otsu_of_histogram(counts)
    assert (level.item(), defined.item()) == (10, True)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_map_has_no_threshold(value):
    maps = torch.stack([torch.full((6, 7), value), torch.linspace(0, 1, 42).view(6, 7)])
    levels, defined = otsu_levels(maps)
    assert defined.tolist() == [False, True]
    assert levels[0] == int(255 * value)
    assert not (maps[0] * 255 > levels[0] + 1).any()


def test_no_pixels_at_all():
    level, defined = otsu_of_histogram(torch.zeros(256, dtype=torch.int64))
    assert (level.item(), defined.item()) == (0, False)


@pytest.mark.parametrize("relative", [False, True])
def test_histogram_against_bincount(relative):
    maps = torch.rand(5, 9, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    maps[1] *= 0.3
    maps[4] = 0
    counts = level_histogram(maps, relative=relative)
    for map_, row in zip(maps.numpy(), counts.numpy(), strict=True):
        levels = (255 * map_).astype(np.uint8).astype(int)
        if relative and levels.max():
            levels = levels * 255 // levels.max()
        assert np.array_equal(row, np.bincount(levels.ravel(), minlength=256))


def test_half_precision_maps_are_widened():
    maps = torch.linspace(0, 1, 4096).view(1, 64, 64).bfloat16()
    assert torch.equal(level_histogram(maps), level_histogram(maps.float()))
