import numpy as np
import pytest
import torch

from colocam.maps.foreground import array_foreground_of, foreground_of


def sorted_mean(maps):
    """The mean of the highest 3 of 1,000 pixels of each map in 8 bits, of one pixel at least."""
    levels = np.sort(np.asarray(255 * maps if maps.dtype != np.uint8 else maps).astype(np.uint8).reshape(len(maps), -1))
    return levels[:, -max(1, 3 * levels.shape[1] // 1000) :].mean(1) / 255


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize("side", [1, 7, 14, 56, 112])
def test_the_mean_of_the_highest_pixels(side, levels):
    maps = np.random.default_rng(side).random((5, side, side), np.float32) ** 4
    maps[3] = 0.5  # all pixels are equal
    maps = (255 * maps).astype(np.uint8) if levels else maps
    found = array_foreground_of(maps)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, sorted_mean(maps), rtol=1e-6)
    np.testing.assert_array_equal(foreground_of(torch.from_numpy(maps)).numpy(), found)  # the twin, to the last bit


def test_frames_do_not_depend_on_each_other():
    maps = np.random.default_rng(0).random((6, 40, 40), np.float32)
    alone = [array_foreground_of(maps[at : at + 1])[0] for at in range(6)]
    assert array_foreground_of(maps).tolist() == alone
    assert array_foreground_of(maps[:0]).shape == (0,)
