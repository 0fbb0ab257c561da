import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.boxes import candidate_boxes, largest_boxes
from colocam.boxes.candidates import MOST, explained

levels_of = hnp.arrays(np.uint8, st.tuples(st.just(2), st.integers(1, 12), st.integers(1, 12)))


def overlap(level, threshold, box):
    """The score, pixel by pixel."""
    lit = level[level > int(threshold * int(level.max()))].astype(float)
    if not len(lit):
        return 0.0
    common = union = 0.0
    for y, x in np.ndindex(*level.shape):
        bright = level[y, x] > int(threshold * int(level.max()))
        inside = box[0] <= x <= box[2] and box[1] <= y <= box[3]
        common += float(level[y, x]) if inside and bright else 0
        union += float(level[y, x]) if bright else lit.mean() if inside else 0
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


@settings(deadline=None, max_examples=60)
@given(
    level=hnp.arrays(np.uint8, (9, 12), elements=st.sampled_from([0, 30, 60, 90, 130, 180, 255])),
    threshold=st.floats(0, 1),
    box=st.tuples(st.floats(-3, 14), st.floats(-3, 14), st.floats(0, 9), st.floats(0, 9)),
)
def test_boxes_of_other_frames_are_scored_as_the_own_ones(level, threshold, box):
    (found,) = candidate_boxes(level[None], threshold)
    np.testing.assert_array_equal(explained(level, threshold, found.boxes), found.scores)
    x, y, width, height = box
    (score,) = explained(level, threshold, np.array([[x, y, x + width, y + height]]))
    x1, x2 = (min(max(round(at), 0), 11) for at in (x, x + width))
    y1, y2 = (min(max(round(at), 0), 8) for at in (y, y + height))
    assert score == pytest.approx(overlap(level, threshold, (x1, y1, x2, y2)))


def test_specks_are_no_candidates_and_of_too_many_the_best_are_kept():
    speck = np.zeros((1, 96, 96), np.uint8)
    speck[0, 20:60, 20:60] = 255
    speck[0, 80, 80] = 255
    assert candidate_boxes(speck, 0.5)[0].boxes.tolist() == [[20, 20, 60, 60]]
    many = np.zeros((1, 200, 200), np.uint8)
    for at in range(36):  # of growing area
        y, x, side = 30 * (at // 6) + 2, 30 * (at % 6) + 2, 12 + at // 3
        many[0, y : y + side, x : x + side] = 255
    (found,) = candidate_boxes(many, 0.5)
    assert len(found.boxes) == MOST
    sides = found.boxes[:, 2] - found.boxes[:, 0]
    assert sides[0] == sides.max() == 23
    assert sides.min() == 12 + (36 - MOST) // 3
