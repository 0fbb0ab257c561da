import cv2
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from colocam.boxes import boxes_at_levels, extract


def box_of_mask(mask):
    """Bounding rectangle of OpenCV's largest contour, clipped to the last pixel."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    x, y, w, h = cv2.boundingRect(max(contours, key=cv2.contourArea))
    return x, y, min(x + w, mask.shape[1] - 1), min(y + h, mask.shape[0] - 1)


def naive(map_):
    """One call of OpenCV for each of the levels below the maximum."""
    boxes = np.zeros((256, 4), int)
    for level in range(int(map_.max())):
        boxes[level] = box_of_mask(map_ > level)
    return boxes


def check(*maps):
    for map_ in maps:
        assert np.array_equal(boxes_at_levels(map_[None])[0], naive(map_))


def noise(height, width, levels_, seed=0):
    return np.random.default_rng(seed).integers(0, levels_, (height, width)).astype(np.uint8)


@settings(max_examples=150, deadline=None)
@given(
    arrays(
        np.uint8,
        array_shapes(min_dims=2, max_dims=2, max_side=9),
        elements=st.sampled_from([0, 1, 2, 3, 7, 8, 128, 254, 255]),
    )
)
@example(np.zeros((3, 3), np.uint8))
@example(np.full((1, 1), 255, np.uint8))
@example(np.full((1, 7), 9, np.uint8))
def test_any_small_map(map_):
    check(map_)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 24), st.integers(1, 24), st.sampled_from([2, 8, 40]), st.integers(0, 3)
)
def test_noise_from_ties_and_holes_to_smooth(seed, height, width, levels_, blur):
    map_ = noise(height, width, levels_, seed)
    check(cv2.GaussianBlur(map_, (0, 0), blur) if blur else map_)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.5))
def test_thin_shapes(seed, density):
    """Straight lines and frames of rectangles, which enclose much and fill little."""
    generator = np.random.default_rng(seed)
    map_ = np.zeros((20, 26), np.uint8)
    for _ in range(int(density * 30)):
        a, b = generator.integers(0, 26, 2).tolist(), generator.integers(0, 26, 2).tolist()
        draw = cv2.line if generator.random() < 0.5 else cv2.rectangle
        draw(map_, a, b, int(generator.integers(1, 40)), 1)
    check(map_)


@pytest.mark.parametrize("block", [slice(3, 24), slice(3, 28), slice(12, 20)])
def test_line_from_edge_to_edge_gives_way_to_a_block_of_more_area(block):
    """Its box is the whole picture at a high level already, but only much area would make that final."""
    map_ = np.full((30, 30), 20, np.uint8)
    map_[0] = map_[:, 0] = 220
    map_[block, block] = 100
    check(map_, map_[::-1].copy(), map_[:, ::-1].copy())


def test_float_maps_are_cast_as_published_and_frames_do_not_mix():
    maps = torch.rand(5, 13, 17, generator=torch.Generator().manual_seed(0))
    maps[2] = 0
    together = boxes_at_levels(maps)
    assert together.shape == (5, 256, 4)
    for map_, boxes in zip(maps.numpy(), together, strict=True):
        assert np.array_equal(boxes, naive((map_ * 255).astype(np.uint8)))


def test_several_threads_give_the_same(monkeypatch):
    maps = noise(7 * 16, 16, 256).reshape(7, 16, 16)
    alone = boxes_at_levels(maps)
    for threads in (2, 3, 20):
        monkeypatch.setattr(extract, "threads", lambda threads=threads: threads)
        assert np.array_equal(boxes_at_levels(maps), alone)


def test_without_c_opencv_finds_the_same(monkeypatch):
    monkeypatch.setattr(extract, "kernels", None)
    check(noise(12, 14, 6), noise(20, 20, 200), np.full((5, 6), 3, np.uint8))
