"""The loops in C against the Python functions that they are twins of."""

import numpy as np
import pytest

from colocam.boxes import candidates, extract, iou
from colocam.boxes.instance_boxes import _blobs
from colocam.temporal import cuts, path, presence
from colocam.utils.jit import source_of

native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")

RANDOM = np.random.default_rng(0)


def boxes(count):
    """Boxes (count, 4), some of them without area, one with a corner that is not a number."""
    corners = np.round(RANDOM.uniform(0, 30, (count, 4)), 1)
    corners[: count // 2, 2:] += corners[: count // 2, :2]
    corners[-1, 1] = np.nan
    return corners


def level(height=23, width=31):
    """A map with some blobs."""
    y, x = np.mgrid[:height, :width]
    blobs = sum(np.exp(-((y - b) ** 2 + (x - a) ** 2) / s) for a, b, s in [(8, 7, 20), (22, 15, 30), (14, 19, 3)])
    return (255 * np.clip(blobs + RANDOM.uniform(0, 0.1, blobs.shape), 0, 1)).astype(np.uint8)


PAIRS = [
    (iou.pair_iou, lambda: (boxes(4)[0], boxes(4)[1], 1.0)),
    (path._margin, lambda: (boxes(9), RANDOM.random(9), boxes(3)[0])),
    (path._changes, lambda: (boxes(3)[0], boxes(9), 1.3)),
    (path._best_changes, lambda: (boxes(7), RANDOM.normal(size=8), boxes(5), 1.3)),
    (path._best_changes, lambda: (np.zeros((0, 4)), np.zeros(1), np.zeros((0, 4)), 1.3)),
    (path._line, lambda: (np.arange(6.0), boxes(7)[:6], 2.0, 1.5, 0.3, RANDOM.random(6))),
    (presence.later_odds, lambda: (RANDOM.normal(0, 5, 12),)),
    (presence._next, lambda: (RANDOM.normal(0, 5, 12),)),
]


@pytest.mark.parametrize(("function", "inputs"), PAIRS)
def test_small_functions_compute_what_python_computes(function, inputs):
    assert function.__module__ == "colocam.native.kernels" or type(function).__name__ == "builtin_function_or_method"
    given = inputs()
    found, expected = function(*given), source_of(function)(*given)
    for one, two in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-13)


def test_histograms():
    frames, found, expected = RANDOM.integers(0, 256, (2, 5, 7, 3), np.uint8), *np.zeros((2, 2, 4, 3, 256), np.int64)
    cuts._count(frames, found)
    source_of(cuts._count)(frames, expected)
    assert np.array_equal(found, expected)


def test_scores_of_boxes_on_a_map():
    given, found, expected = boxes(9)[:8], np.zeros(8), np.zeros(8)
    one = level()
    candidates._explain(one, 0.4, given, found)
    source_of(candidates._explain)(one, 0.4, given, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_arrays_that_lie_apart_are_read_as_their_values():
    wide = np.repeat(np.repeat(level(), 2, 0), 2, 1)
    assert not wide[::2, ::2].flags.c_contiguous
    apart, together = wide[::2, ::2], np.ascontiguousarray(wide[::2, ::2])
    expected = _blobs(together, 0.3, 2.0)
    assert len(expected) >= 2
    assert np.array_equal(_blobs(apart, 0.3, 2.0), expected)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros((1, 4, 4), np.float32), 0.5, np.zeros((1, 4), np.float32), np.zeros(1, bool)),
        (np.zeros((1, 4, 4), np.uint8), 0.5, np.zeros((1, 4), np.float64), np.zeros(1, bool)),
        (np.zeros((4, 4), np.uint8), 0.5, np.zeros((1, 4), np.float32), np.zeros(1, bool)),
        (np.zeros((1, 4, 4), np.uint8), "0.5", np.zeros((1, 4), np.float32), np.zeros(1, bool)),
        (np.zeros((1, 4, 4), np.uint8), 0.5, np.zeros((1, 4), np.float32)),
        (None, 0.5, np.zeros((1, 4), np.float32), np.zeros(1, bool)),
    ],
)
def test_other_types_are_refused(arguments):
    with pytest.raises(TypeError):
        extract._largest(*arguments)


def test_shapes_that_do_not_fit_are_refused():
    """Otherwise C would write beyond the end of an array."""
    with pytest.raises(ValueError, match="shapes do not fit"):
        extract._largest(np.zeros((2, 4, 4), np.uint8), 0.5, np.zeros((1, 4), np.float32), np.zeros(2, bool))
    with pytest.raises((ValueError, BufferError)):
        extract._largest(np.zeros((2, 4, 4), np.uint8), 0.5, np.zeros((4, 4), np.float32)[::2], np.zeros(2, bool))
