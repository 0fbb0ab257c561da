import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.evaluation.metrics import average_precision, calibration_error, pixel_histograms, pxap


def brute_force(scores, true):
    """Average precision by its definition: for every distinct score, count what lies at or above it."""
    area, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [t for s, t in zip(scores, true, strict=True) if s >= threshold]
        new = sum(chosen) / sum(true)
        area += sum(chosen) / len(chosen) * (new - recall)
        recall = new
    return area


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_average_precision_with_ties(pairs):
    scores, present = np.array([p[0] / 5 for p in pairs]), np.array([p[1] for p in pairs])
    if present.any():
        assert average_precision(scores, present) == pytest.approx(brute_force(scores.tolist(), present.tolist()))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 50, 1000]))
def test_pxap_is_average_precision_over_all_pixels(seed, steps):
    generator = np.random.default_rng(seed)
    maps = generator.integers(0, steps + 1, (2, 6, 7)) / steps
    masks = (generator.random((2, 6, 7)) < 0.3).astype(np.uint8)
    masks[0, 0, 0], masks[1, 3] = 1, 255
    counted = masks != 255
    binned = np.floor(maps * 1000)
    expected = 100 * brute_force(binned[counted].tolist(), (masks[counted] == 1).tolist())
    assert pxap(pixel_histograms(maps, masks)) == pytest.approx(expected)


def test_histograms_of_batches_add_up_and_scores_of_one_count():
    maps = np.linspace(0, 1, 40).reshape(4, 2, 5)
    masks = np.arange(40).reshape(4, 2, 5) % 3 == 0
    whole = pixel_histograms(maps, masks)
    assert np.array_equal(whole, pixel_histograms(maps[:1], masks[:1]) + pixel_histograms(maps[1:], masks[1:]))
    assert whole.sum() == 40
    assert whole[:, -1].tolist() == [0, 1]
    assert whole[1].sum() == masks.sum()


def test_masks_without_foreground_are_refused():
    with pytest.raises(ColocamError, match="foreground"):
        pxap(pixel_histograms(np.zeros((1, 2, 2)), np.zeros((1, 2, 2), bool)))


def test_calibration_error_is_the_gap_between_promise_and_truth():
    said = np.array([0.05, 0.05, 0.05, 0.95, 0.95, 1.0])
    present = np.array([0, 0, 1, 1, 1, 0], bool)
    low, high = abs(0.05 - 1 / 3), abs(2.9 / 3 - 2 / 3)  # bins 0–0.1 and 0.9–1
    assert calibration_error(said, present) == pytest.approx((3 * low + 3 * high) / 6)
    assert calibration_error(said, present, bins=1) == pytest.approx(abs(said.mean() - 0.5))
    assert calibration_error(np.full(4, 0.75), np.array([1, 1, 1, 0], bool)) == pytest.approx(0)
