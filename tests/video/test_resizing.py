"""Frames are resized by area averages, to the bytes of OpenCV on x86."""

import platform

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.video import frame_ring
from colocam.video.frame_ring import resize_into

SIDES = st.tuples(st.integers(1, 40), st.integers(0, 90)).map(lambda pair: (pair[0], pair[0] + pair[1]))
APART = 0 if platform.machine() in {"x86_64", "AMD64"} else 1
"""Levels by which OpenCV may differ: on ARM it fuses multiplications and additions."""
LEVELS = st.sampled_from([tuple(range(256)), (0, 255), (255,), (254, 255)])


def assert_as_opencv(found, image):
    expected = cv2.resize(image, found.shape[1::-1], interpolation=cv2.INTER_AREA)
    assert np.abs(found.astype(int) - expected).max() <= APART


@settings(max_examples=200, deadline=None)
@given(rows=SIDES, columns=SIDES, levels=LEVELS, seed=st.integers(0, 2**32 - 1))
def test_averages_are_those_of_opencv(rows, columns, levels, seed):
    native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")
    (few, height), (narrow, width) = rows, columns
    image = np.random.default_rng(seed).choice(np.array(levels, np.uint8), (height, width, 3))
    found, around = np.empty((few, narrow, 3), np.uint8), np.full(few * narrow * 3 + 2, 7, np.uint8)
    resize_into(image, found)
    assert_as_opencv(found, image)
    if height % few or width % narrow:
        native.resize_area(image, around[1:-1].reshape(few, narrow, 3))
        assert np.array_equal(around, [7, *found.ravel(), 7])  # nothing is written beside it


@pytest.mark.parametrize(
    ("height", "width"),
    # of the last one, 1.5 × 2 pixels become one, so that a sixth of the exact averages end with .5
    [(360, 640), (1080, 1920), (225, 224), (224, 1000), (448, 672), (100, 640), (100, 100), (336, 448)],
)
def test_sizes_of_videos_also_of_images_that_lie_apart_in_memory(height, width):
    wide = np.random.default_rng(0).integers(0, 256, (height, 2 * width, 3), np.uint8)
    found = np.empty((224, 224, 3), np.uint8)
    for image in (wide[:, :width], wide[::-1, ::2]):
        resize_into(image, found)
        assert_as_opencv(found, np.ascontiguousarray(image))


def test_without_the_module_in_c_opencv_resizes(monkeypatch):
    monkeypatch.setattr(frame_ring, "kernels", None)
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    found = np.empty((32, 32, 3), np.uint8)
    resize_into(image, found)
    assert np.array_equal(found, cv2.resize(image, (32, 32), interpolation=cv2.INTER_AREA))


@pytest.mark.parametrize(
    ("image", "resized"),
    [((4, 9, 3), (5, 5, 3)), ((9, 9, 4), (5, 5, 3)), ((9, 9, 3), (5, 5, 1)), ((9, 9, 3), (0, 5, 3))],
)
def test_shapes_that_do_not_fit_are_refused(image, resized):
    """Otherwise C would write beyond the end of an array."""
    native = pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")
    with pytest.raises(ValueError, match="shapes do not fit"):
        native.resize_area(np.zeros(image, np.uint8), np.zeros(resized, np.uint8))
