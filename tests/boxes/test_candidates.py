import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.boxes import candidate_boxes, largest_boxes
from colocam.boxes.candidates import FACTORS, MOST
from colocam.boxes.extract import mask_of_box
from colocam.errors import ColocamError

levels_of = hnp.arrays(np.uint8, st.tuples(st.just(2), st.integers(1, 12), st.integers(1, 12)))


def overlap(level, threshold, box):
    """The score, pixel by pixel."""
    mean = level[level > int(threshold * level.max())].astype(float).mean()
    common = union = 0.0
    for y, x in np.ndindex(*level.shape):
        bright = level[y, x] > int(threshold * level.max())
        inside = box[0] <= x <= box[2] and box[1] <= y <= box[3]
        common += float(level[y, x]) if inside and bright else 0
        union += float(level[y, x]) if bright else mean if inside else 0
    return common / union


@settings(deadline=None, max_examples=60)
@given(levels=levels_of, threshold=st.floats(0, 1))
def test_the_published_box_comes_first_and_scores_are_overlaps(levels, threshold):
    boxes, found = largest_boxes(levels, threshold)
    for i, candidates in enumerate(candidate_boxes(levels, threshold)):
        assert (len(candidates.boxes) > 0) == found[i]
        assert len(candidates.boxes) == len(candidates.scores) == len(candidates.thresholds) <= MOST
        if found[i]:
            assert candidates.boxes[0].tolist() == boxes[i].tolist()
            assert len(np.unique(candidates.boxes, axis=0)) == len(candidates.boxes)
            wanted = [overlap(levels[i], threshold, box) for box in candidates.boxes]
            np.testing.assert_allclose(candidates.scores, wanted, atol=1e-9)
            assert candidates.scores.min() >= 0
            assert candidates.scores.max() <= 1 + 1e-9


def test_parts_that_join_at_a_lower_threshold_are_candidates_apart_and_together():
    level = np.zeros((40, 60), np.uint8)
    level[10:30, 5:25] = 255
    level[12:28, 35:50] = 200
    level[18:22, 25:35] = 60  # a faint bridge, below half of the maximum
    boxes = {tuple(box) for box in candidate_boxes(level[None], 0.4)[0].boxes.astype(int).tolist()}
    assert boxes >= {(5, 10, 25, 30), (35, 12, 50, 28), (5, 10, 50, 30)}


def test_every_candidate_knows_the_threshold_of_its_outline():
    level = np.zeros((40, 60), np.uint8)
    level[10:30, 5:25] = 255
    level[12:28, 35:50] = 100
    found = candidate_boxes(level[None], 0.5)[0]
    assert set(found.thresholds.tolist()) <= {min(0.5 * factor, 1) for factor in FACTORS}
    for box, threshold in zip(found.boxes, found.thresholds, strict=True):
        mask = mask_of_box(level, threshold, box, (60, 40))
        x1, y1, x2, y2 = box.astype(int)
        assert mask[y1:y2, x1:x2].all() or tuple(box) == (5, 10, 50, 30)
        assert not mask[:y1].any()
        assert not mask[y2:].any()


def test_noise_is_no_crowd_of_candidates_and_specks_are_none():
    noise = np.random.default_rng(0).integers(0, 256, (1, 96, 96)).astype(np.uint8)
    assert 1 <= len(candidate_boxes(noise, 0.5)[0].boxes) <= MOST
    speck = np.zeros((1, 96, 96), np.uint8)
    speck[0, 20:60, 20:60] = 255
    speck[0, 80, 80] = 255
    assert candidate_boxes(speck, 0.5)[0].boxes.tolist() == [[20, 20, 60, 60]]


def test_thresholds_are_checked():
    with pytest.raises(ColocamError, match=r"the threshold must lie in 0–1, not 1\.5"):
        candidate_boxes(np.zeros((1, 4, 4), np.uint8), 1.5)


def test_sums_of_large_maps_do_not_overflow(monkeypatch):
    """Maps of more pixels than 32 bits can add up take the same way with wider numbers."""
    maps = cv2.GaussianBlur(np.random.default_rng(0).random((64, 80)), (0, 0), 5)[None]
    maps = (maps - maps.min()) / np.ptp(maps)
    (narrow,) = candidate_boxes(maps, 0.3)
    monkeypatch.setattr("colocam.boxes.candidates.EXACT", 0)
    (wide,) = candidate_boxes(maps, 0.3)
    assert len(narrow.boxes) > 3
    for one, two in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(one, two)
