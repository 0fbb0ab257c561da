import numpy as np
import pytest

from colocam.evaluation.metrics import steadiness

NO = [np.nan] * 4


def test_a_still_box_is_still():
    assert steadiness([np.tile([3.0, 4, 20, 30], (7, 1))]) == (0, 0, 0, 6)


def test_steady_motion_changes_but_does_not_jitter():
    boxes = np.array([[2.0 * t, 0, 2 * t + 20, 20] for t in range(6)])
    found = steadiness([boxes])
    assert found.change == pytest.approx(0.1)
    assert found.jitter == pytest.approx(0, abs=1e-12)
    assert found.shifts == 0
    grows = np.array([[-np.exp(0.1 * t), -np.exp(0.1 * t), np.exp(0.1 * t), np.exp(0.1 * t)] for t in range(6)]) * 9
    assert steadiness([grows]).change == pytest.approx(0.1)
    assert steadiness([grows]).jitter == pytest.approx(0, abs=1e-9)


def test_a_shaking_box_by_hand():
    """Right by a quarter of its size and back: first differences ¼, second ½."""
    boxes = np.array([[4.0 * (t % 2), 0, 4.0 * (t % 2) + 16, 16] for t in range(5)])
    assert steadiness([boxes]) == (pytest.approx(0.25), pytest.approx(0.5), 0, 4)


def test_shifts_are_overlaps_below_a_half_and_cuts_are_none():
    boxes = np.array([[0.0, 0, 10, 10], [0, 0, 10, 10], [4, 0, 14, 10], [30, 30, 40, 40], [30, 30, 40, 40]])
    assert steadiness([boxes]).shifts == 2  # 6/14 and 0
    cuts = np.array([False, False, False, True, False])
    found = steadiness([boxes], [cuts])
    assert (found.shifts, found.pairs) == (1, 3)


def test_frames_without_a_box_are_no_neighbors():
    boxes = np.array([[0.0, 0, 10, 10], NO, [50, 50, 60, 60], [50, 50, 60, 60]])
    assert steadiness([boxes]) == (0, 0, 0, 1)
    assert steadiness([np.array([NO, NO])]) == (0, 0, 0, 0)
    assert steadiness([]) == (0, 0, 0, 0)


def test_means_are_over_all_videos():
    still, moving = np.tile([0.0, 0, 10, 10], (3, 1)), np.array([[5.0 * t, 0, 5 * t + 10, 10] for t in range(3)])
    assert steadiness([still, moving]).change == pytest.approx(0.25)
    assert steadiness([still, moving]).shifts == 2
