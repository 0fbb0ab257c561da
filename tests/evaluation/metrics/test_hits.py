import cv2
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from colocam.boxes import boxes_at_levels, largest_boxes
from colocam.evaluation.metrics import box_hits
from colocam.evaluation.metrics.hits import PUBLISHED_THRESHOLDS, best_overlaps, hits_of_overlaps
from tests.helpers.counting import inclusive_iou

GRID = PUBLISHED_THRESHOLDS[::7]


def naive(maps, boxes, thresholds, iou):
    """The published loop: one contour search per threshold, boxes of whole pixels."""
    hits = np.zeros((len(maps), len(thresholds)), bool)
    for t, threshold in enumerate(thresholds):
        predicted, _ = largest_boxes(maps, threshold)
        for i, box in enumerate(predicted):
            hits[i, t] = max(inclusive_iou(box.astype(int), true.astype(int)) for true in boxes[i]) >= iou
    return hits


def hits_from(maps, boxes, thresholds, least):
    return hits_of_overlaps(best_overlaps(boxes_at_levels(maps), boxes), maps.max((1, 2)), thresholds, least)


def random_boxes(generator, height, width, most):
    def one():
        x, y = np.sort(generator.uniform(0, width, 2)), np.sort(generator.uniform(0, height, 2))
        return [x[0], y[0], x[1], y[1]]

    return np.array([one() for _ in range(generator.integers(1, most + 1))])


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.uint8, array_shapes(min_dims=3, max_dims=3, max_side=8), elements=st.sampled_from([0, 1, 9, 10, 255])),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]),
)
@example(np.zeros((2, 3, 3), np.uint8), 0, 0.5)
def test_same_as_the_naive_sweep_on_any_map(maps, seed, iou):
    generator = np.random.default_rng(seed)
    boxes = [random_boxes(generator, *maps.shape[1:], 3) for _ in maps]
    grid = [*PUBLISHED_THRESHOLDS[::61], 0.999, 1.0]
    assert np.array_equal(hits_from(maps, boxes, grid, iou), naive(maps, boxes, grid, iou))


@pytest.mark.parametrize("sigma", [0, 1, 4])
def test_same_as_the_naive_sweep_on_float_frames(sigma):
    generator = np.random.default_rng(sigma)
    maps = generator.random((3, 32, 40), np.float32)
    if sigma:
        maps = np.stack([cv2.GaussianBlur(map_, (0, 0), sigma) for map_ in maps])
    maps[1] *= 0.1  # few levels, so that many thresholds share a mask
    boxes = [random_boxes(generator, 32, 40, 2) for _ in maps]
    boxes[0][0] = largest_boxes(maps[:1], GRID[90])[0][0]
    hits = box_hits(torch.from_numpy(maps), boxes, GRID)
    assert hits.any()
    assert not hits.all()
    assert np.array_equal(hits, naive(maps, boxes, GRID, 0.5))


def test_several_overlaps_at_once():
    generator = np.random.default_rng(2)
    maps = generator.integers(0, 256, (4, 16, 16), np.uint8)
    boxes = [random_boxes(generator, 16, 16, 2) for _ in maps]
    together = hits_from(maps, boxes, GRID, (0.3, 0.5, 0.7))
    assert np.array_equal(together, [hits_from(maps, boxes, GRID, iou) for iou in (0.3, 0.5, 0.7)])
    assert np.array_equal(together[1], box_hits(maps, boxes, GRID))


def test_no_frames():
    assert box_hits(np.zeros((0, 4, 4), np.float32), [], GRID).shape == (0, len(GRID))
    assert best_overlaps(np.zeros((0, 256, 4)), []).shape == (0, 256)
