import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from torchvision.ops import box_iou

from colocam.boxes.iou import best_pairs, iou

SHAPES = st.tuples(st.integers(0, 6), st.integers(0, 6))
corner = st.integers(-4, 6)
wild = st.tuples(corner, corner, corner, corner)


def pixels(box):
    """Pixels of a box whose corners belong to it; none for one that is inside out."""
    return {(x, y) for x in range(box[0], box[2] + 1) for y in range(box[1], box[3] + 1)}


@given(wild, wild, st.booleans())
def test_iou_counts_pixels_or_unit_squares(a, b, inclusive):
    """A box from x1 to x2 covers the pixels x1 … x2, or the unit squares that begin at x1 … x2 − 1."""
    less = 0 if inclusive else 1
    first, second = (pixels((*box[:2], box[2] - less, box[3] - less)) for box in (a, b))
    expected = len(first & second) / len(first | second) if first | second else 0
    assert iou(np.array(a), np.array(b), inclusive=inclusive) == pytest.approx(expected)


def test_shapes_are_broadcast_and_values_are_those_of_torchvision():
    boxes = np.random.default_rng(0).uniform(0, 9, (3, 5, 4))
    others = np.random.default_rng(1).uniform(0, 9, (5, 4))
    boxes[..., 2:] += boxes[..., :2]
    others[..., 2:] += others[..., :2]
    found = iou(boxes, others)
    assert found.shape == (3, 5)
    for row, own in zip(found, boxes, strict=True):
        np.testing.assert_allclose(row, box_iou(torch.from_numpy(own), torch.from_numpy(others)).diagonal())
    assert iou(boxes[:0], others).shape == (0, 5)


def test_no_box_overlaps_nothing():
    nowhere = np.full(4, np.nan)
    box = np.array([0, 0, 2, 2])
    assert iou(nowhere, box) == 0
    assert iou(box, nowhere) == 0


@settings(max_examples=150, deadline=None)
@given(st.one_of(arrays(np.float64, SHAPES, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])), arrays(bool, SHAPES)))
def test_pairs_have_the_largest_sum_also_among_equals(values):
    rows, columns = best_pairs(values)
    assert rows == sorted(set(rows))
    assert len(set(columns)) == len(columns) == min(values.shape)
    assert values[rows, columns].sum() == values[linear_sum_assignment(values, maximize=True)].sum()


@pytest.mark.parametrize("shape", [(40, 60), (60, 40), (30, 30)])
def test_many_rows_and_columns(shape):
    values = np.random.default_rng(0).random(shape)
    rows, columns = linear_sum_assignment(values, maximize=True)
    assert best_pairs(values) == (rows.tolist(), columns.tolist())
