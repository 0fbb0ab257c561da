"""Frames, maps and masks in the square of a segmenter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.segment.refine import PADDING_COLOR, extents, maps_in_squares, mask_in_frame, squares


def plain(width, height, value=200):
    return np.full((height, width, 3), value, np.uint8)


def test_the_longest_side_fills_the_square_and_the_rest_is_padding():
    square = squares([plain(200, 100), plain(30, 60), plain(1, 4000)], 64)
    assert square.inside.tolist() == [[64, 32], [32, 64], [1, 64]]
    for image, (width, height) in zip(square.images, square.inside, strict=True):
        assert (image[:height, :width] == 200).all()
        outside = np.ones((64, 64), bool)
        outside[:height, :width] = False
        assert (image[outside] == PADDING_COLOR).all()


def test_no_frames():
    assert squares([], 64).images.shape == (0, 64, 64, 3)


@given(
    size=st.tuples(st.integers(20, 90), st.integers(20, 90)),
    left=st.floats(0, 0.6),
    top=st.floats(0, 0.6),
    extent=st.floats(0.25, 0.4),
)
def test_a_map_and_a_mask_of_the_same_place_agree(size, left, top, extent):
    """A rectangle drawn in the map lies at the same share of the frame in the square, and back in the frame."""
    width, height = size
    square = squares([plain(width, height)], 64)
    share = np.array([left, top, left + extent, top + extent])
    x1, y1, x2, y2 = np.rint(share * 112).astype(int)
    level = np.zeros((1, 112, 112), np.uint8)
    level[0, y1:y2, x1:x2] = 255
    placed = maps_in_squares(level, square, 64)[0]
    inside = square.inside[0].astype(float)
    found = extents(placed > 127) / np.tile(inside, 2)
    assert found == pytest.approx(np.array([x1, y1, x2, y2]) / 112, abs=0.6 / inside.min())
    mask = mask_in_frame(placed.astype(np.float32) - 127.5, size, tuple(inside))
    assert mask.shape == (height, width)
    back = extents(mask) / np.tile(size, 2)
    assert back == pytest.approx(np.array([x1, y1, x2, y2]) / 112, abs=0.6 / inside.min() + 0.6 / min(size))


def test_the_padding_of_a_square_holds_no_map():
    square = squares([plain(100, 50)], 64)
    placed = maps_in_squares(np.full((1, 20, 20), 255, np.uint8), square, 32)[0]
    assert (placed[:15] > 0).all()
    assert (placed[17:] == 0).all()
