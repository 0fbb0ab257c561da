"""Blobs against SciPy and OpenCV, whichever way they are found."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from colocam.boxes import blobs
from colocam.boxes.blobs import bounding_box

masks = hnp.arrays(bool, hnp.array_shapes(min_dims=3, max_dims=3, max_side=11), elements=st.booleans())


def largest_by_scipy(mask):
    numbered, count = ndimage.label(mask)  # its default structure is the 4-neighbourhood
    if count == 0:
        return mask
    sizes = np.bincount(numbered.ravel())[1:]
    last_pixel = ndimage.maximum(np.arange(mask.size).reshape(mask.shape), numbered, np.arange(1, count + 1))
    best = max(range(count), key=lambda i: (sizes[i], last_pixel[i]))
    return numbered == best + 1


def on_gpu(mask):
    """The way of the GPU, which runs anywhere."""
    return blobs._largest_by_spreading(mask)


ways = pytest.mark.parametrize("way", [blobs.largest_blob, on_gpu], ids=["cpu", "gpu"])


@ways
@given(mask=masks)
def test_largest_blob_is_scipys(way, mask):
    assert (way(torch.from_numpy(mask)).numpy() == np.stack([largest_by_scipy(one) for one in mask])).all()


@ways
@given(seed=st.integers(0, 2**32), density=st.floats(0.4, 0.8))
@settings(max_examples=20)
def test_largest_blob_has_the_size_that_opencv_says(way, seed, density):
    mask = np.random.default_rng(seed).random((2, 24, 31)) < density
    for one, found in zip(mask, way(torch.from_numpy(mask)).numpy(), strict=True):
        *_, stats, _ = cv2.connectedComponentsWithStats(one.astype(np.uint8), connectivity=4)
        assert found.sum() == stats[1:, cv2.CC_STAT_AREA].max(initial=0)
        assert cv2.connectedComponents(found.astype(np.uint8), connectivity=4)[0] == 2


def snake(side):
    mask = np.zeros((side, side), bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    return mask


def stairs(side):
    return np.eye(side, dtype=bool) | np.eye(side, k=1, dtype=bool)


@ways
@pytest.mark.parametrize("shape", [snake, stairs])
@pytest.mark.parametrize("turn", range(4))
def test_a_blob_may_turn_as_often_as_it_likes(way, shape, turn):
    mask = np.rot90(shape(40), turn).copy()
    assert (way(torch.from_numpy(mask)[None])[0].numpy() == mask).all()


@given(masks)
def test_bounding_box_is_the_smallest_that_holds_the_mask(mask):
    boxes = bounding_box(torch.from_numpy(mask)).numpy()
    for one, box in zip(mask, boxes, strict=True):
        expected = np.zeros_like(one)
        if one.any():
            rows, columns = np.nonzero(one)
            expected[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
        assert (box == expected).all()
