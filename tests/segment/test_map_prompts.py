"""Prompts read from heat maps."""

import numpy as np

from colocam.boxes import largest_boxes
from colocam.segment.refine import map_prompts, peaks_of, squares

THRESHOLDS = (0.06, 0.3, 0.5)


def bump(x, y, size=64, width=6.0):
    rows, columns = np.mgrid[:size, :size]
    return (255 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * width**2))).astype(np.uint8)


def test_boxes_of_all_thresholds_and_the_peak_in_pixels_of_the_square():
    levels = np.stack([bump(20, 40), bump(50, 10)])
    square = squares([np.zeros((90, 180, 3), np.uint8), np.zeros((100, 50, 3), np.uint8)], 256)
    prompts = map_prompts(levels, square, THRESHOLDS)
    assert prompts.points.shape == (2, len(THRESHOLDS) + 1, 2, 2)
    assert prompts.labels[0].tolist() == [[2, 3]] * len(THRESHOLDS) + [[1, -1]]
    scales = np.array([[256 / 64, 128 / 64], [128 / 64, 256 / 64]])
    for index, threshold in enumerate(THRESHOLDS):
        boxes = largest_boxes(levels, threshold)[0]
        np.testing.assert_allclose(prompts.points[:, index].reshape(2, 4), boxes * np.tile(scales, 2))
    np.testing.assert_allclose(prompts.points[:, -1, 0], (np.array([[20, 40], [50, 10]]) + 0.5) * scales - 0.5)
    assert prompts.points.dtype == np.float32


def test_the_peak_is_that_of_a_region_not_of_a_pixel():
    level = bump(20, 40) // 2
    level[5, 60] = 255
    assert peaks_of(level[None]).tolist() == [[20, 40]]
