"""The threshold from maps alone: the pooled mean of the maps, each relative to its maximum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.filters import threshold_otsu

from colocam.boxes.quantize import UNDECIDED, tags_only_threshold


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
