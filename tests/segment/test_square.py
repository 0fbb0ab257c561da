"""Frames, maps, prompts and masks in the square of a segmenter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.boxes import largest_boxes
from colocam.segment.refine import (
    PADDING_COLOR,
    THRESHOLDS,
    extents,
    inside_square,
    map_prompts,
    maps_in_squares,
    mask_in_frame,
    squares,
)


def plain(width, height, value=200):
    return np.full((height, width, 3), value, np.uint8)


def test_the_longest_side_fills_the_square_and_the_rest_is_padding():
    images = [plain(200, 100), plain(30, 60), plain(1, 4000)]
    inside = inside_square(images, 64)
    assert inside.tolist() == [[64, 32], [32, 64], [1, 64]]
    for image, (width, height) in zip(squares(images, inside, 64), inside, strict=True):
        assert (image[:height, :width] == 200).all()
        outside = np.ones((64, 64), bool)
        outside[:height, :width] = False
        assert (image[outside] == PADDING_COLOR).all()


@given(
    size=st.tuples(st.integers(20, 90), st.integers(20, 90)),
    left=st.floats(0, 0.6),
    top=st.floats(0, 0.6),
    extent=st.floats(0.25, 0.4),
)
def test_a_map_and_a_mask_of_the_same_place_agree(size, left, top, extent):
    """A rectangle drawn in the map lies at the same share of the frame in the square, and back in the frame."""
    width, height = size
    (inside,) = inside_square([plain(width, height)], 64).astype(float)
    share = np.array([left, top, left + extent, top + extent])
    x1, y1, x2, y2 = np.rint(share * 112).astype(int)
    level = np.zeros((1, 112, 112), np.uint8)
    level[0, y1:y2, x1:x2] = 255
    placed = maps_in_squares(level, inside[None], 64)[0]
    found = extents(placed > 127) / np.tile(inside, 2)
    assert found == pytest.approx(np.array([x1, y1, x2, y2]) / 112, abs=0.6 / inside.min())
    mask = mask_in_frame(placed.astype(np.float32) - 127.5, size, tuple(inside))
    assert mask.shape == (height, width)
    back = extents(mask) / np.tile(size, 2)
    assert back == pytest.approx(np.array([x1, y1, x2, y2]) / 112, abs=0.6 / inside.min() + 0.6 / min(size))


def bump(x, y, size=64, width=6.0):
    rows, columns = np.mgrid[:size, :size]
    return (255 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * width**2))).astype(np.uint8)


def test_prompts_are_boxes_of_all_thresholds_and_the_peak_in_pixels_of_the_square():
    levels = np.stack([bump(20, 40), bump(50, 10) // 2])
    levels[1, 60, 5] = 255  # a single pixel is no peak
    prompts = map_prompts(levels, np.array([[256, 128], [128, 256]]))
    assert prompts.points.shape == (2, len(THRESHOLDS) + 1, 2, 2)
    assert prompts.labels[0].tolist() == [[2, 3]] * len(THRESHOLDS) + [[1, -1]]
    scales = np.array([[256 / 64, 128 / 64], [128 / 64, 256 / 64]])
    for index, threshold in enumerate(THRESHOLDS):
        boxes = largest_boxes(levels, threshold)[0]
        np.testing.assert_allclose(prompts.points[:, index].reshape(2, 4), boxes * np.tile(scales, 2))
    np.testing.assert_allclose(prompts.points[:, -1, 0], (np.array([[20, 40], [50, 10]]) + 0.5) * scales - 0.5)
    assert prompts.points.dtype == np.float32
