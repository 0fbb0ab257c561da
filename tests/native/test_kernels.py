"""The loops in C against the Python functions beside them."""

import numpy as np
import pytest

from colocam.boxes.extract import sweep_by_opencv
from colocam.temporal.cuts import count_by_opencv

native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(2, 5, 7, 3), (1, 8, 6, 3), (1, 1, 1, 3), (2, 1, 4, 3)])
def test_histograms(shape):
    frames = RANDOM.integers(0, 256, shape, np.uint8)
    found, expected = np.zeros((2, len(frames), 4, 3, 256), np.int64)
    native.count_colors(frames, found)
    count_by_opencv(frames, expected)
    assert np.array_equal(found, expected)


def test_arrays_that_lie_apart_are_read_as_their_values():
    levels = RANDOM.integers(0, 9, (2, 20, 30), np.uint8)[:, ::2, ::3]
    found, expected = np.zeros((2, 2, 256, 4), np.int16)
    native.sweep_levels(levels, found)
    sweep_by_opencv(np.ascontiguousarray(levels), expected)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros((1, 4, 4), np.float32), np.zeros((1, 256, 4), np.int16)),
        (np.zeros((1, 4, 4), np.uint8), np.zeros((1, 256, 4), np.int32)),
        (np.zeros((4, 4), np.uint8), np.zeros((1, 256, 4), np.int16)),
        (np.zeros((1, 4, 4), np.uint8),),
        (None, np.zeros((1, 256, 4), np.int16)),
    ],
)
def test_other_types_are_refused(arguments):
    with pytest.raises(TypeError):
        native.sweep_levels(*arguments)


def test_shapes_that_do_not_fit_are_refused():
    """Otherwise C would write beyond the end of an array."""
    with pytest.raises(ValueError, match="shapes do not fit"):
        native.sweep_levels(np.zeros((2, 4, 4), np.uint8), np.zeros((1, 256, 4), np.int16))
    with pytest.raises((ValueError, BufferError)):
        native.sweep_levels(np.zeros((2, 4, 4), np.uint8), np.zeros((4, 256, 4), np.int16)[::2])
