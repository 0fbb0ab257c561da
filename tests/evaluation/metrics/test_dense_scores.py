"""Scores of dense shots against sequences whose values are known in closed form."""

import numpy as np
import pytest

from colocam.evaluation.metrics.dense_scores import (
    ShotMeasurements,
    best_iou,
    mean_scores,
    neighbor_changes,
    pool,
    score_shot,
)
from colocam.types import Box

TEN = Box(0, 0, 9, 9)
"""Ten by ten pixels, since corners belong to the box."""


def moved(x, y=0.0):
    return Box(TEN.x1 + x, TEN.y1 + y, TEN.x2 + x, TEN.y2 + y)


def measured(overlaps, changes, class_right=(), switches=(), frames=10, seconds=2.0):
    kinds = (overlaps, float), (changes, float), (class_right, bool), (switches, bool), ([frames], int)
    return ShotMeasurements(*(np.array(values, kind) for values, kind in kinds), np.array([seconds]))


@pytest.mark.parametrize("x", range(12))
def test_iou_of_a_moved_box(x):
    """A square of side 10 moved by x has the IoU (10 − x) / (10 + x)."""
    assert best_iou(moved(x), [TEN]) == pytest.approx(max(10 - x, 0) / (10 + x))


def test_the_best_true_box_counts_and_a_missing_box_is_wrong():
    assert best_iou(moved(2), [moved(50), moved(0)]) == pytest.approx(8 / 12)
    assert best_iou(None, [TEN]) == 0


@pytest.mark.parametrize("speed", [0, 1, 3, 20])
def test_jitter_of_steady_motion(speed):
    changes = neighbor_changes({i: [moved(speed * i)] for i in range(6)})
    assert changes == pytest.approx([1 - max(10 - speed, 0) / (10 + speed)] * 5)


def test_only_frames_next_to_each_other_are_neighbors():
    boxes = {0: [TEN], 1: [], 2: [moved(5)], 3: [moved(5)], 5: [TEN]}
    assert neighbor_changes(boxes).tolist() == [0]
    assert neighbor_changes({0: [TEN], 2: [TEN]}).tolist() == []


def test_several_true_boxes_are_matched_whatever_their_order():
    boxes = {0: [TEN, moved(100)], 1: [moved(101), TEN]}
    assert neighbor_changes(boxes) == pytest.approx([(0 + 1 - 9 / 11) / 2])


def test_scores_of_a_shot():
    scores = score_shot(measured([0.5, 0.49, 1.0, 0.0], [0.1, 0.3], [1, 0, 0, 0], switches=[1, 0, 1, 1]))
    assert scores.corloc == 50  # an IoU of 0.5 is right
    assert scores.mean_iou == pytest.approx(1.99 / 4)
    assert scores.jitter == pytest.approx(0.2)
    assert (scores.class_right, scores.switches) == (25, 3)
    assert scores.frames_per_second == 5


def test_with_the_tag_there_is_no_class_to_be_right():
    scores = score_shot(measured([1.0], []))
    assert (scores.class_right, scores.switches, scores.jitter) == (None, None, None)


def test_means_over_shots_and_over_frames():
    short = measured([1.0], [], [1], [], frames=1, seconds=1.0)
    long = measured([0, 0, 0.8], [0.2, 0.4], [0, 0, 1], [0, 1], frames=3, seconds=1.0)
    shots = mean_scores([score_shot(short), score_shot(long)])
    assert shots.corloc == pytest.approx((100 + 100 / 3) / 2)
    assert shots.class_right == pytest.approx((100 + 100 / 3) / 2)
    assert shots.jitter == pytest.approx(0.3)  # the shot of one frame has none
    assert (shots.switches, shots.frames_per_second) == (0.5, 2)
    frames = score_shot(pool([short, long]))
    assert (frames.corloc, frames.class_right) == (50, 50)
    assert frames.mean_iou == pytest.approx(1.8 / 4)
    assert (frames.switches, frames.frames_per_second) == (1, 2)
