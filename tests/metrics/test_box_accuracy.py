import numpy as np
import pytest
from skimage.measure import label, regionprops

from colocam.errors import ColocamError
from colocam.metrics import any_contour_hits, box_hits, inclusive_iou, max_box_acc, top_k

GRID = np.arange(0, 1, 0.05)


def test_top_k_against_sorting():
    generator = np.random.default_rng(0)
    logits, tags = generator.normal(size=(50, 8)), generator.integers(0, 8, 50)
    for k in (1, 2, 5, 8):
        expected = [tag in np.argsort(-row)[:k] for row, tag in zip(logits, tags, strict=True)]
        assert top_k(logits, tags, k).tolist() == expected


def test_top_k_gives_no_credit_for_a_classifier_that_says_nothing():
    assert not top_k(np.zeros((4, 3)), np.arange(3).repeat(2)[:4], 2).any()


def test_max_box_acc_takes_the_best_threshold_for_each_overlap():
    hits = np.array([[[1, 1, 0], [0, 1, 0]], [[0, 1, 1], [0, 0, 1]], [[0, 0, 0], [1, 0, 0]]], bool)
    assert max_box_acc(hits[0]) == 100
    assert max_box_acc(hits) == pytest.approx((100 + 100 + 50) / 3)


def test_any_contour_may_be_the_right_one():
    maps = np.zeros((1, 30, 30), np.float32)
    maps[0, 2:20, 2:20] = 1
    maps[0, 24:29, 24:29] = 0.9
    small = [np.array([[24, 24, 29, 29]])]
    assert not box_hits(maps, small, [0.5], (0.3, 0.5, 0.7)).any()
    assert any_contour_hits(maps, small, [0.5, 0.95])[..., 0].all()
    assert not any_contour_hits(maps, small, [0.5, 0.95])[..., 1].any()


def test_against_components_and_holes_by_another_library():
    generator = np.random.default_rng(1)
    levels = generator.integers(0, 8, (4, 12, 14)).astype(np.uint8)
    boxes = [np.array([[2, 2, 6, 9], [4, 1, 12, 8]])] * 4
    hits = any_contour_hits(levels, boxes, GRID, (0.2, 0.5))
    for i, map_ in enumerate(levels):
        for t, threshold in enumerate(GRID):
            mask = map_ > int(threshold * int(map_.max()))
            found = [r.bbox for r in regionprops(label(mask, connectivity=2))]
            background = label(np.pad(~mask, 1, constant_values=True), connectivity=1)
            for hole in regionprops(np.where(background == background[0, 0], 0, background)):
                y1, x1, y2, x2 = hole.bbox  # in the padded frame; the contour runs one pixel further out
                found.append((y1 - 2, x1 - 2, y2, x2))
            predicted = np.array([[x1, y1, min(x2, 13), min(y2, 11)] for y1, x1, y2, x2 in found])
            best = inclusive_iou(predicted[:, None], boxes[i]).max()
            assert hits[:, i, t].tolist() == [best >= 0.2, best >= 0.5]


def test_never_below_the_largest_contour_and_empty_maps_alike():
    generator = np.random.default_rng(2)
    maps = generator.random((3, 16, 16))
    maps[2] = 0
    boxes = [np.array([[1, 1, 9, 9]]), np.array([[8, 8, 14, 15]]), np.array([[0, 0, 0, 0]])]
    any_, largest = any_contour_hits(maps, boxes, GRID), box_hits(maps, boxes, GRID, (0.3, 0.5, 0.7))
    assert (any_ >= largest).all()
    assert any_[:, 2].all()
    assert largest[:, 2].all()


def test_one_array_of_boxes_for_each_map():
    with pytest.raises(ColocamError, match="2 maps but true boxes of 1"):
        any_contour_hits(np.zeros((2, 4, 4)), [np.zeros((1, 4))], GRID)
