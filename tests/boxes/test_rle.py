"""Masks as text, against pycocotools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco_mask

from colocam.boxes import rle
from colocam.errors import ColocamError


def by_pycocotools(mask):
    return coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()


@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=40)))
def test_the_text_is_that_of_pycocotools_and_comes_back(mask):
    text = rle.encode(mask)
    assert text == by_pycocotools(mask)
    np.testing.assert_array_equal(rle.decode(text, *mask.shape), mask)
    assert rle.area(text, *mask.shape) == mask.sum()


Y, X = np.ogrid[:540, :960]
LARGE = {
    "full": Y + X >= 0,
    "noise": np.random.default_rng(0).random((540, 960)) < 0.3,
    "disc": (X - 500) ** 2 + (Y - 250) ** 2 < 200**2,
    "last pixel": Y + X == 539 + 959,
    "stripes": (Y >= 0) & (X % 7 == 0),
}


@pytest.mark.parametrize("mask", LARGE.values(), ids=LARGE)
def test_large_masks(mask):
    """Long runs need several characters, and runs that shrink need negative ones."""
    text = rle.encode(mask)
    assert text == by_pycocotools(mask)
    np.testing.assert_array_equal(rle.decode(text, 540, 960), mask)
    np.testing.assert_array_equal(coco_mask.decode({"size": [540, 960], "counts": text}), mask)
    assert rle.area(text, 540, 960) == mask.sum()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30) | st.text("0123456789:;@OPQRo", max_size=12), st.integers(1, 50), st.integers(1, 50))
def test_any_text_is_a_mask_or_an_error_of_one_line(text, height, width):
    try:
        mask = rle.decode(text, height, width)
    except ColocamError as refused:
        mask, says = None, str(refused)
    if mask is None:
        assert says.startswith("the mask ")
        assert "\n" not in says
    else:
        assert mask.shape == (height, width)
        np.testing.assert_array_equal(rle.decode(rle.encode(mask), height, width), mask)


def test_a_mask_of_another_picture():
    text = rle.encode(np.ones((4, 5), bool))
    with pytest.raises(ColocamError, match="does not fit an image of 6×4"):
        rle.decode(text, 4, 6)
    with pytest.raises(ColocamError, match="run lengths"):
        rle.expand("P")  # says that more follows
