import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.measure import label, regionprops

from colocam.boxes import largest_boxes, scale_boxes
from colocam.boxes.extract import mask_of_box


def one(map_, threshold):
    boxes, found = largest_boxes(np.asarray(map_)[None], threshold)
    return boxes[0].tolist(), bool(found[0])


def mask_of_largest(level, threshold, size):
    return mask_of_box(level, threshold, largest_boxes(level[None], threshold)[0][0].tolist(), size)


def blank(height=20, width=30):
    return np.zeros((height, width), np.float32)


def test_single_pixels_tie_and_the_one_furthest_down_counts():
    map_ = blank()
    map_[2, 3] = map_[7, 20] = map_[7, 5] = 1
    assert one(map_, 0.5) == ([20, 7, 21, 8], True)


@settings(max_examples=60, deadline=None)
@given(arrays(np.uint8, st.tuples(st.just(2), st.integers(2, 12), st.integers(2, 12))), st.floats(0, 1))
def test_box_is_that_of_a_connected_component_no_smaller_than_the_others(maps, threshold):
    boxes, found = largest_boxes(maps, threshold)
    for map_, box, ok in zip(maps, boxes, found, strict=True):
        mask = map_ > int(threshold * int(map_.max()))
        regions = regionprops(label(mask, connectivity=2))
        assert ok == bool(regions)
        candidates = {}
        for region in regions:
            y1, x1, y2, x2 = region.bbox
            filled = np.pad(region.image_filled, 1).astype(int)  # holes through 4-connected background
            corners = filled[1:, 1:] + filled[:-1, 1:] + filled[1:, :-1] + filled[:-1, :-1]
            area = (corners == 4).sum() + 0.5 * (corners == 3).sum()
            clipped = (x1, y1, min(x2, map_.shape[1] - 1), min(y2, map_.shape[0] - 1))
            candidates[clipped] = max(area, candidates.get(clipped, 0))
        if ok:
            assert candidates[tuple(box.tolist())] == max(candidates.values())


def test_scale_boxes_by_axis_and_back():
    boxes = np.array([[[0, 0, 112, 56], [10, 20, 30, 40]]])
    scaled = scale_boxes(boxes, (224, 224), (640, 360))
    assert scaled.dtype == np.float32
    assert scaled[0, 0].tolist() == [0, 0, 320, 90]
    assert np.allclose(scale_boxes(scaled, (640, 360), (224, 224)), boxes, atol=1e-4)


def test_a_mask_is_the_largest_blob_with_its_holes():
    level = np.zeros((20, 30), np.uint8)
    level[2:12, 3:20] = 200
    level[5:8, 6:10] = 0  # a hole
    level[15:19, 22:28] = 255  # brighter but smaller
    wanted = np.zeros((20, 30), bool)
    wanted[2:12, 3:20] = True
    wanted[5:8, 6:10] = False
    np.testing.assert_array_equal(mask_of_largest(level, 0.5, (30, 20)), wanted)
    doubled = mask_of_largest(level, 0.5, (60, 40))
    assert np.mean(doubled != wanted.repeat(2, 0).repeat(2, 1)) < 0.02  # corners are rounded
    (box,), _ = largest_boxes(level[None], 0.5)
    rows, columns = np.flatnonzero(doubled.any(1)), np.flatnonzero(doubled.any(0))
    assert [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1] == (2 * box).tolist()


def test_no_mask_without_foreground_or_when_nothing_of_it_is_left():
    level = np.zeros((20, 30), np.uint8)
    assert mask_of_largest(level, 0.5, (30, 20)) is None
    level[3, 3] = 255
    assert mask_of_largest(level, 0.5, (30, 20)).sum() == 1
    assert mask_of_largest(level, 0.5, (3, 2)) is None


def test_no_box_without_a_level_above_zero_or_above_the_maximum_itself():
    for map_ in (blank(), blank() + 0.003):
        assert one(map_, 0.0) == ([0, 0, 0, 0], False)
    assert one(blank() + 0.7, 1.0) == ([0, 0, 0, 0], False)
    assert one(blank() + 0.7, 0.999) == ([0, 0, 29, 19], True)
    boxes, found = largest_boxes(np.zeros((0, 8, 8), np.float32), 0.5)
    assert (boxes.shape, found.shape) == ((0, 4), (0,))
