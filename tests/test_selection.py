"""The threshold from maps alone: Li's on the pooled relative levels."""

import numpy as np
from skimage.filters import threshold_li

from colocam.selection import UNDECIDED, tags_only_threshold


def two_modes(seed, maximum=255):
    rng = np.random.default_rng(seed)
    maps = rng.integers(0, 60, (6, 20, 20))
    maps[:, 5:12, 4:15] = rng.integers(150, 256, (6, 7, 11))
    maps[:, 5, 4] = 255
    return (maps * maximum // 255).astype(np.uint8)


def test_it_splits_two_modes_where_li_of_all_pixels_does():
    maps = two_modes(0)
    threshold = tags_only_threshold(maps)
    assert ((maps > int(threshold * 255)) == (maps > threshold_li(maps))).all()
    assert ((maps > int(threshold * 255)) == (maps >= 150)).all()


def test_it_is_relative_to_each_maps_maximum():
    dim = two_modes(0, maximum=128)
    mixed = np.concatenate([two_modes(0), dim])
    assert abs(tags_only_threshold(mixed) - tags_only_threshold(two_modes(0))) < 0.02
    for level in (dim, two_modes(0)):
        foreground = level > int(tags_only_threshold(mixed) * level.max())
        assert foreground[:, 5:12, 4:15].all()
        assert foreground.mean() == 7 * 11 / 400


def test_constant_maps_decide_nothing_alone_but_do_not_hinder_others():
    blank = np.zeros((3, 20, 20), np.uint8)
    assert tags_only_threshold(blank) == UNDECIDED
    assert tags_only_threshold(blank + 7) == UNDECIDED
    maps = two_modes(0)
    threshold = tags_only_threshold(np.concatenate([maps, blank]))
    assert ((maps > int(threshold * 255)) == (maps >= 150)).all()
