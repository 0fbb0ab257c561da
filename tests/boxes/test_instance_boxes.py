import numpy as np
import pytest
from skimage.measure import label, regionprops

from colocam.boxes import instance_boxes, largest_boxes
from colocam.boxes.candidates import LEAST_AREA, LEAST_SHARE


def boxes_of(level, threshold=0.5):
    (found,) = instance_boxes(level[None], threshold)
    return [tuple(box) for box in found.boxes.astype(int).tolist()]


def noise(seed, side=48):
    """A smooth random map with several blobs."""
    rng = np.random.default_rng(seed)
    small = np.kron(rng.random((side // 6, side // 6)), np.ones((6, 6)))
    return (255 * small).astype(np.uint8)


@pytest.mark.parametrize("seed", range(6))
def test_every_large_blob_has_its_box(seed):
    """Against the components of another library, holes filled as the outline of a contour does."""
    level = noise(seed)
    mask = level > int(0.7 * level.max())
    regions = regionprops(label(mask, connectivity=2))
    expected = set()
    for region in regions:
        top, left, bottom, right = region.bbox
        expected.add((left, top, min(right, 47), min(bottom, 47)))
    found = boxes_of(level, 0.7)
    assert len(found) == len(set(found)) <= len(expected)
    assert set(found) <= expected
    # the outline runs through pixel centers, so that its area is smaller than the pixels'
    largest = max(region.area_filled for region in regions)
    for region in regions:
        if (region.area_filled - region.perimeter) > max(LEAST_SHARE * largest, LEAST_AREA * level.size):
            top, left, bottom, right = region.bbox
            assert (left, top, min(right, 47), min(bottom, 47)) in found
    (published,), _ = largest_boxes(level[None], 0.7)
    assert tuple(published.astype(int)) in found


def test_tiny_blobs_and_splinters_are_left_out_but_never_the_largest():
    level = np.zeros((100, 100), np.uint8)
    level[10:50, 10:50] = 255
    level[60:80, 60:80] = 200  # a quarter of the largest
    level[90:98, 5:13] = 255  # larger than 1/400 of the frame, smaller than a tenth of the largest
    assert boxes_of(level) == [(10, 10, 50, 50), (60, 60, 80, 80)]
    level[:60, :60] = 0
    assert boxes_of(level) == [(60, 60, 80, 80), (5, 90, 13, 98)]
    level[:] = 0
    level[3, 4] = 255
    assert boxes_of(level) == [(4, 3, 5, 4)]


def test_a_blob_within_a_ring_is_an_object_of_its_own_and_a_hole_is_none():
    level = np.zeros((60, 60), np.uint8)
    level[5:55, 5:55] = 255
    level[10:50, 10:50] = 0
    assert boxes_of(level) == [(5, 5, 55, 55)]
    level[20:40, 20:40] = 255
    assert boxes_of(level) == [(20, 20, 40, 40), (5, 5, 55, 55)]  # what stands out most comes first


def contrast(level, box):
    """By hand, pixel for pixel: mean inside − 0.9 · mean around it, times the share of the frame to the power 0.3."""
    x1, y1, x2, y2 = box
    wide, high = 0.2 * (x2 - x1), 0.2 * (y2 - y1)
    inside, around = [], []
    for y, x in np.ndindex(level.shape):
        if x1 <= x < x2 and y1 <= y < y2:
            inside.append(level[y, x] / 255)
        elif round(x1 - wide) <= x < round(x2 + wide) and round(y1 - high) <= y < round(y2 + high):
            around.append(level[y, x] / 255)
    differs = np.mean(inside) - 0.9 * (np.mean(around) if around else 0)
    return max(differs, 0) * (len(inside) / level.size) ** 0.3


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_contrasts_and_the_highest_comes_first(seed):
    level = noise(seed)
    (found,) = instance_boxes(level[None], 0.6)
    assert len(found.boxes) > 1
    expected = [contrast(level, box) for box in found.boxes.astype(int).tolist()]
    np.testing.assert_allclose(found.scores, expected, atol=1e-12)
    assert found.scores.tolist() == sorted(found.scores, reverse=True)
    assert found.thresholds.tolist() == [0.6] * len(found.boxes)


def test_a_map_without_foreground_has_none():
    (found,) = instance_boxes(np.zeros((1, 8, 8)), 0.5)
    assert (found.boxes.shape, found.scores.shape, found.thresholds.shape) == ((0, 4), (0,), (0,))
