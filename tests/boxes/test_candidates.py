import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.boxes import candidate_boxes, largest_boxes
from colocam.boxes.candidates import FACTORS, LEAST_AREA, MOST, eligible, explained
from colocam.boxes.extract import contour_box, mask_of_box
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
    with pytest.raises(ColocamError, match=r"threshold must be in 0–1, got 1\.5"):
        candidate_boxes(np.zeros((1, 4, 4), np.uint8), 1.5)


def contours_of(mask):
    return cv2.findContours(mask.astype(np.uint8), cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)[0]


def with_opencv(level, threshold, factors=FACTORS):
    """The same candidates from OpenCV's contours, one call for each mask."""
    highest, least = int(level.max()), LEAST_AREA * level.size
    found, seen = {}, set()
    for factor in factors:
        tau = min(threshold * factor, 1.0)
        cut = int(tau * highest)
        if cut in seen:
            continue
        seen.add(cut)
        contours = contours_of(level > cut)
        if not found and not contours:
            break
        ordered = sorted(contours, key=cv2.contourArea, reverse=True)
        for place, contour in enumerate(ordered):
            if place == 0 or cv2.contourArea(contour) >= least:
                found.setdefault(contour_box(contour, level.shape), tau)
    boxes, thresholds = np.array(list(found), float).reshape(-1, 4), np.array(list(found.values()))
    bright = level > int(threshold * highest)
    heat, scores = np.where(bright, level, 0).astype(float), []
    for x1, y1, x2, y2 in boxes.astype(int):
        inside = np.s_[y1 : y2 + 1, x1 : x2 + 1]
        empty = bright[inside].size - bright[inside].sum()
        scores.append(heat[inside].sum() / (heat.sum() + heat.sum() / bright.sum() * empty))
    scores = np.array(scores)
    if len(boxes) <= MOST:
        return boxes, scores, thresholds
    kept = np.sort(np.append(np.argsort(-scores[1:], kind="stable")[: MOST - 1] + 1, 0))
    return boxes[kept], scores[kept], thresholds[kept]


def check(level, threshold):
    (found,) = candidate_boxes(level[None], threshold)
    for one, wanted in zip(found[:3], with_opencv(level, threshold), strict=True):
        np.testing.assert_array_equal(one, wanted)
    return len(found.boxes)


@settings(deadline=None, max_examples=200)
@given(
    level=hnp.arrays(
        np.uint8,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=20),
        elements=st.sampled_from([0, 1, 2, 7, 8, 128, 254, 255]),
    ),
    threshold=st.floats(0, 1),
)
@example(level=np.zeros((3, 3), np.uint8), threshold=0.0)
@example(level=np.full((1, 9), 255, np.uint8), threshold=0.5)
@example(level=np.full((9, 1), 255, np.uint8), threshold=1.0)
def test_candidates_are_those_of_opencv_in_its_order(level, threshold):
    check(level, threshold)


@settings(deadline=None, max_examples=60)
@given(
    level=hnp.arrays(np.uint8, (9, 9), elements=st.sampled_from([0, 30, 60, 90, 130, 180, 255])),
    threshold=st.floats(0, 1),
)
def test_those_at_the_own_threshold_are_the_ones_of_that_alone(level, threshold):
    (found,) = candidate_boxes(level[None], threshold)
    kept = eligible(found)
    for one, wanted, every in zip(kept[:3], with_opencv(level, threshold, (1.0,)), found[:3], strict=True):
        np.testing.assert_array_equal(one, wanted)
        np.testing.assert_array_equal(one, every[: len(one)])


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
    heat = [[int(value) if value > int(threshold * int(level.max())) else 0 for value in row] for row in level.tolist()]
    all_heat, bright = sum(map(sum, heat)), sum(value > 0 for row in heat for value in row)
    inside = [heat[j][i] for j in range(y1, y2 + 1) for i in range(x1, x2 + 1)]
    wanted = sum(inside) / (all_heat + all_heat / bright * inside.count(0)) if bright else 0
    assert score == pytest.approx(wanted)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.floats(0, 1))
def test_thin_and_nested_shapes_too(seed, count, threshold):
    """Lines and frames of rectangles: borders that pass a pixel twice, holes within holes, equal areas."""
    generator = np.random.default_rng(seed)
    level = np.zeros((24, 37), np.uint8)
    for _ in range(count):
        a, b = generator.integers(0, 37, 2).tolist(), generator.integers(0, 37, 2).tolist()
        draw = cv2.line if generator.random() < 0.3 else cv2.rectangle
        draw(level, a, b, int(generator.integers(1, 256)), 1)
    check(level, threshold)


@pytest.mark.parametrize("blur", [0.5, 1.5, 4, 9])
def test_large_maps_with_more_candidates_than_are_kept(blur):
    noise = np.random.default_rng(0).normal(size=(224, 200))
    smooth = cv2.GaussianBlur(noise, (0, 0), blur)
    level = (255 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.uint8)
    counts = [check(level, threshold) for threshold in (0.2, 0.4, 0.55)]
    assert blur != 4 or MOST in counts


def test_a_batch_gives_what_its_maps_give_alone():
    """What one map leaves in the space shared by all changes nothing for the next."""
    levels = np.random.default_rng(1).integers(0, 256, (6, 40, 33)).astype(np.uint8)
    levels[3] = 0
    for together, level in zip(candidate_boxes(levels, 0.6), levels, strict=True):
        for one, alone in zip(together[:3], candidate_boxes(level[None], 0.6)[0][:3], strict=True):
            np.testing.assert_array_equal(one, alone)
    assert candidate_boxes(levels[:0], 0.6) == []
