import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.temporal.zero import BIN, CENTERS, FEWEST, HIGHEST, LEAST, LOWEST, MOST, ShotZeros, two_groups

MARGIN = 0.5


def zeros_of(*signs):
    """Of signs, each with a value per frame."""
    shot = ShotZeros(np.full(len(signs), MARGIN))
    for evidence in np.array(signs, float).T:
        shot.add(evidence)
    return shot.zeros


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(CENTERS) - 1), min_size=1, max_size=30))
def test_the_groups_differ_most_of_all_splits(bins):
    """Least squares within the groups, by trying every split."""
    values = np.sort(CENTERS[bins])
    (low,), (high,) = two_groups(np.bincount(bins, minlength=len(CENTERS)).cumsum()[None].astype(float))

    def within(split):
        return sum(((part - part.mean()) ** 2).sum() for part in (values[:split], values[split:]) if len(part))

    splits = [split for split in range(1, len(values)) if values[split] > values[split - 1]]
    if not splits:
        assert low == pytest.approx(high) == pytest.approx(values[0])
        return
    best = min(map(within, splits))
    means = [(values[:split].mean(), values[split:].mean()) for split in splits if within(split) < best + 1e-9]
    assert any(np.allclose((low, high), pair) for pair in means)


def test_zero_lies_just_above_the_lower_of_two_groups_far_apart():
    rng = np.random.default_rng(0)
    for low in (-1.2, -0.5, 0.0, 0.4):
        values = np.concatenate([rng.normal(low, 0.2, 40), rng.normal(low + 5, 0.5, 20)])
        assert zeros_of(values)[0] == pytest.approx(np.clip(low + MARGIN, LEAST, MOST), abs=0.1 + BIN / 2)


def test_zero_stays_without_two_groups_far_apart():
    rng = np.random.default_rng(0)
    for middle in (-2.0, 0.0, 3.0):
        assert zeros_of(rng.normal(middle, 0.8, 60)) == [0.0]
        assert zeros_of(np.repeat([middle, middle + 2], 30)) == [0.0]
    assert zeros_of(np.full(60, 1.0)) == [0.0]
    assert zeros_of(np.repeat([0.0, 6.0], (FEWEST - 2, 1))) == [0.0]
    assert zeros_of(np.repeat([0.0, 6.0], (FEWEST - 1, 1))) == pytest.approx([MARGIN], abs=BIN)


def test_it_moves_by_no_more_than_a_bound():
    assert zeros_of(np.repeat([-4.0, 8.0], 20)) == [LEAST]
    assert zeros_of(np.repeat([3.0, 7.9], 20)) == [MOST]
    assert zeros_of(np.repeat([-1e9, 1e9], 20)) == [LEAST]
    assert LOWEST < LEAST < MOST < HIGHEST


def test_signs_do_not_disturb_each_other_nor_does_the_order_of_frames():
    rng = np.random.default_rng(0)
    signs = [np.repeat([0.2, 5.0], 20), rng.normal(0, 0.5, 40), np.repeat([-0.9, 0.0, 6.0], (20, 5, 15))]
    together = zeros_of(*signs)
    assert together.tolist() == [zeros_of(one)[0] for one in signs]
    order = rng.permutation(40)
    assert zeros_of(*(one[order] for one in signs)).tolist() == together.tolist()
