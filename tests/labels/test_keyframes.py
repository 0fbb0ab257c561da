"""Few key frames, from which straight lines give every box back."""

import numpy as np
import pytest

from colocam.labels.formats.writing import sparse_keyframes

GAPS = np.array([0, 1, 2, 7, 30, 31])


@pytest.mark.parametrize(
    ("frames", "boxes", "keys"),
    [
        (GAPS, GAPS[:, None] * np.array([1.5, -2, 0.25, 3]) + 100, [0, 5]),  # straight motion, whatever the gaps
        (np.arange(101), np.abs(np.arange(101) - 40)[:, None] + np.zeros(4), [0, 40, 100]),  # a corner of the path
        (np.array([5]), np.zeros((1, 4)), [0]),
    ],
)
def test_paths_have_as_few_key_frames_as_they_need(frames, boxes, keys):
    assert sparse_keyframes(frames, boxes, 1e-6).tolist() == keys


def test_ten_minutes_of_noise_are_no_trouble():
    """Deep recursion would show here."""
    boxes = np.random.default_rng(0).random((15_000, 4)) * 100
    assert len(sparse_keyframes(np.arange(15_000), boxes, 1.0)) > 14_000
