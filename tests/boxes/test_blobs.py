"""Blobs against SciPy, whichever way they are found: by OpenCV, or by the GPU's kernels in Triton's interpreter.

``tests/test_triton_interpreter.py`` runs this file again in the interpreter, where ``largest`` goes the GPU's way.
"""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from colocam.boxes import blobs
from colocam.boxes.blobs import bounding_box, largest_blob

INTERPRETED = "TRITON_INTERPRET" in os.environ

masks = hnp.arrays(bool, hnp.array_shapes(min_dims=3, max_dims=3, max_side=9), elements=st.booleans())


def largest(mask):
    way = blobs._largest_on_gpu if INTERPRETED else largest_blob
    return way(torch.from_numpy(mask)).numpy()


def largest_by_scipy(mask):
    """Of equals the first in reading order; SciPy's default structure is the 4-neighborhood."""
    numbered, count = ndimage.label(mask)
    if count == 0:
        return mask
    sizes = np.bincount(numbered.ravel())[1:]
    first_pixel = ndimage.minimum(np.arange(mask.size).reshape(mask.shape), numbered, np.arange(1, count + 1))
    best = max(range(count), key=lambda i: (sizes[i], -first_pixel[i]))
    return numbered == best + 1


@given(masks)
@settings(max_examples=15 if INTERPRETED else 100, deadline=None)
def test_largest_blob_is_scipys(mask):
    assert (largest(mask) == np.stack([largest_by_scipy(one) for one in mask])).all()


@given(st.integers(0, 2**32), st.floats(0.4, 0.8))
@settings(max_examples=2 if INTERPRETED else 20, deadline=None)
def test_blobs_that_percolate_through_a_picture(seed, density):
    mask = np.random.default_rng(seed).random((2, 24, 31)) < density
    assert (largest(mask) == np.stack([largest_by_scipy(one) for one in mask])).all()


def snake(side):
    mask = np.zeros((side, side), bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    return mask


def stairs(side):
    return np.eye(side, dtype=bool) | np.eye(side, k=1, dtype=bool)


@pytest.mark.parametrize("shape", [snake, stairs])
@pytest.mark.parametrize("turn", [3] if INTERPRETED else range(4))
def test_a_blob_may_turn_as_often_as_it_likes(shape, turn):
    mask = np.rot90(shape(33), turn).copy()
    assert mask.size > 2 * blobs._BLOCK  # it also crosses the blocks of the kernels
    assert (largest(np.stack([mask, ~mask, mask.T]))[0] == mask).all()


def test_strided_masks():
    mask = (np.random.default_rng(0).random((2, 12, 24)) < 0.6)[:, :, ::2]
    assert (largest(mask) == np.stack([largest_by_scipy(one) for one in mask])).all()


@pytest.mark.skipif(INTERPRETED, reason="the boxes need no kernel")
@given(masks)
def test_bounding_box_is_the_smallest_that_holds_the_mask(mask):
    boxes = bounding_box(torch.from_numpy(mask)).numpy()
    for one, box in zip(mask, boxes, strict=True):
        expected = np.zeros_like(one)
        if one.any():
            rows, columns = np.nonzero(one)
            expected[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
        assert (box == expected).all()
