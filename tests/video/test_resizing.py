"""Frames are resized to the bytes of OpenCV, by whatever code."""

from typing import ClassVar

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.video import resizing
from colocam.video.resizing import resize_into

SIDES = st.tuples(st.integers(1, 40), st.integers(0, 90)).map(lambda pair: (pair[0], pair[0] + pair[1]))
LEVELS = st.sampled_from([tuple(range(256)), (0, 255), (255,), (254, 255)])


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """With more threads OpenCV would resize."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    yield
    cv2.setNumThreads(before)


@pytest.fixture
def chosen_anew():
    """The function is chosen again in the test, and once more after it."""
    resizing._average.cache_clear()
    yield
    resizing._average.cache_clear()


def by_opencv(image, rows, columns):
    return cv2.resize(image, (columns, rows), interpolation=cv2.INTER_AREA)


@settings(max_examples=200, deadline=None)
@given(rows=SIDES, columns=SIDES, levels=LEVELS, seed=st.integers(0, 2**32 - 1))
def test_averages_are_those_of_opencv(rows, columns, levels, seed):
    native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")
    (few, height), (narrow, width) = rows, columns
    image = np.random.default_rng(seed).choice(np.array(levels, np.uint8), (height, width, 3))
    found, around = np.empty((few, narrow, 3), np.uint8), np.full(few * narrow * 3 + 2, 7, np.uint8)
    resize_into(image, found)
    assert np.array_equal(found, by_opencv(image, few, narrow))
    if height % few or width % narrow:
        native.resizing_area(image, around[1:-1].reshape(few, narrow, 3))
        assert np.array_equal(around, [7, *found.ravel(), 7])  # nothing is written beside it


@pytest.mark.parametrize(
    ("height", "width"), [(360, 640), (1080, 1920), (225, 224), (224, 1000), (448, 672), (100, 640), (100, 100)]
)
def test_sizes_of_films(height, width):
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    found = np.empty((224, 224, 3), np.uint8)
    resize_into(image, found)
    assert np.array_equal(found, by_opencv(image, 224, 224))


def test_half_a_level_is_rounded_as_opencv_does():
    """1.5 × 2 pixels become one, so that a sixth of the exact averages end with .5."""
    image = np.random.default_rng(1).integers(0, 256, (300, 200, 3), np.uint8)
    found = np.empty((200, 100, 3), np.uint8)
    resize_into(image, found)
    assert np.array_equal(found, by_opencv(image, 200, 100))


def test_an_image_that_lies_apart_in_memory():
    wide = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    found = np.empty((32, 32, 3), np.uint8)
    resize_into(wide[::-1, ::2], found)
    assert np.array_equal(found, by_opencv(np.ascontiguousarray(wide[::-1, ::2]), 32, 32))


@pytest.mark.usefixtures("chosen_anew")
def test_opencv_resizes_where_the_function_in_c_rounds_otherwise(monkeypatch):
    class Other:
        @staticmethod
        def resizing_area(image, resized):
            resized[...] = by_opencv(image, *resized.shape[:2])
            resized[0, 0, 0] ^= 1

    monkeypatch.setattr(resizing, "_kernels", Other)
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    found = np.empty((32, 32, 3), np.uint8)
    resize_into(image, found)
    assert np.array_equal(found, by_opencv(image, 32, 32))


@pytest.mark.usefixtures("chosen_anew")
@pytest.mark.parametrize(("threads", "in_c"), [(1, True), (16, False)])
def test_opencv_resizes_where_it_has_many_threads(monkeypatch, threads, in_c):
    class Recorded:
        found: ClassVar = []

        @classmethod
        def resizing_area(cls, image, resized):
            cls.found.append(image.shape[:2])
            resized[...] = by_opencv(image, *resized.shape[:2])

    monkeypatch.setattr(resizing, "_kernels", Recorded)
    monkeypatch.setattr(cv2, "getNumThreads", lambda: threads)
    resize_into(np.zeros((50, 70, 3), np.uint8), np.empty((32, 32, 3), np.uint8))
    assert ((50, 70) in Recorded.found) == in_c


@pytest.mark.parametrize(
    ("image", "resized"),
    [((4, 9, 3), (5, 5, 3)), ((9, 9, 4), (5, 5, 3)), ((9, 9, 3), (5, 5, 1)), ((9, 9, 3), (0, 5, 3))],
)
def test_shapes_that_do_not_fit_are_refused(image, resized):
    """Otherwise C would write beyond the end of an array."""
    native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")
    with pytest.raises(ValueError, match="shapes do not fit"):
        native.resizing_area(np.zeros(image, np.uint8), np.zeros(resized, np.uint8))
