"""Few key frames, from which straight lines give every box back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.labels.formats.writing import sparse_keyframes

boxes_strategy = st.lists(st.tuples(*[st.floats(0, 500)] * 4), min_size=1, max_size=40)


@settings(deadline=None)
@given(boxes_strategy, st.floats(0, 20), st.data())
def test_no_box_is_off_by_more_than_the_tolerance(boxes, tolerance, data):
    gaps = data.draw(st.lists(st.integers(1, 9), min_size=len(boxes), max_size=len(boxes)))
    frames, boxes = np.cumsum(gaps), np.array(boxes)
    places = sparse_keyframes(frames, boxes, tolerance)
    assert (places[0], places[-1]) == (0, len(frames) - 1)
    assert (np.diff(places) > 0).all()
    for corner in boxes.T:
        assert np.abs(np.interp(frames, frames[places], corner[places]) - corner).max() <= tolerance + 1e-9


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
