"""Few key frames, from which straight lines give every box back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.labels.formats.writing import sparse_keyframes

boxes_strategy = st.lists(st.tuples(*[st.floats(0, 500)] * 4), min_size=1, max_size=40)


def interpolated(frames, boxes, places):
    """By numpy's own interpolation, a corner at a time."""
    return np.stack([np.interp(frames, frames[places], boxes[places, corner]) for corner in range(4)], axis=1)


@settings(deadline=None)
@given(boxes_strategy, st.floats(0, 20), st.data())
def test_no_box_is_off_by_more_than_the_tolerance(boxes, tolerance, data):
    gaps = data.draw(st.lists(st.integers(1, 9), min_size=len(boxes), max_size=len(boxes)))
    frames, boxes = np.cumsum(gaps), np.array(boxes)
    places = sparse_keyframes(frames, boxes, tolerance)
    assert places[0] == 0
    assert places[-1] == len(frames) - 1
    assert (np.diff(places) > 0).all()
    assert np.abs(interpolated(frames, boxes, places) - boxes).max() <= tolerance + 1e-9


def test_straight_motion_needs_two_key_frames_whatever_the_gaps():
    frames = np.array([0, 1, 2, 7, 30, 31])
    boxes = frames[:, None] * np.array([1.5, -2, 0.25, 3]) + 100
    assert sparse_keyframes(frames, boxes, 1e-6).tolist() == [0, 5]


def test_a_corner_of_the_path_becomes_a_key_frame():
    frames = np.arange(101)
    boxes = np.abs(frames - 40)[:, None] + np.zeros(4)
    assert sparse_keyframes(frames, boxes, 0.5).tolist() == [0, 40, 100]


def test_one_frame():
    assert sparse_keyframes(np.array([5]), np.zeros((1, 4)), 1.0).tolist() == [0]


def test_ten_minutes_of_noise_are_no_trouble():
    """Deep recursion would show here."""
    frames = np.arange(15_000)
    boxes = np.random.default_rng(0).random((15_000, 4)) * 100
    assert len(sparse_keyframes(frames, boxes, 1.0)) > 14_000
