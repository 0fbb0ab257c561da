from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.boxes import instance_boxes
from colocam.evaluation.metrics import instance_scores, instances_of_maps
from colocam.evaluation.metrics.object_scores import InstanceScores, matches
from tests.helpers.counting import inclusive_iou

corners = st.tuples(*[st.integers(0, 12)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]) + 1, max(c[1], c[3]) + 1)
)
frame = st.tuples(st.lists(corners, max_size=3), st.lists(corners, min_size=1, max_size=3))


def by_hand(predicted, true, least):
    """The most pairs over all ways to give each predicted box a true one or none."""
    options = [*range(len(true)), *[None] * len(predicted)]
    best = 0
    for order in set(permutations(options, len(predicted))):
        pairs = [
            1
            for box, other in zip(predicted, order, strict=True)
            if other is not None and inclusive_iou(box, true[other]) >= least
        ]
        best = max(best, len(pairs))
    return best


@settings(max_examples=25, deadline=None)
@given(st.lists(frame, min_size=1, max_size=2))
def test_matches_against_all_ways_to_match(frames):
    predicted = [np.array(found, float).reshape(-1, 4) for found, _ in frames]
    true = [np.array(there, float) for _, there in frames]
    expected = [[by_hand(found, there, least) for found, there in frames] for least in (0.3, 0.5, 0.7)]
    assert matches(predicted, true).tolist() == expected


def test_a_box_finds_one_object_only():
    """Two true boxes that are nearly the same: one predicted box is half of them, two are all."""
    true = [np.array([[0, 0, 10, 10], [0, 0, 10, 11]])]
    once = instance_scores([true[0][:1]], true)
    assert (once.recall["mean"], once.precision["mean"]) == (50, 100)
    assert instance_scores(true, true).recall["mean"] == 100
    many = instance_scores([np.concatenate([true[0], true[0] + 50])], true)
    assert (many.recall["mean"], many.precision["mean"]) == (100, 50)


def test_recall_by_overlap():
    true = [np.array([[0, 0, 9, 9], [50, 50, 59, 59]])]
    found = [np.array([[0, 0, 9, 5], [50, 50, 59, 53]])]  # IoU 0.6 and 0.4
    scores = instance_scores(found, true)
    assert scores.recall == {"0.3": 100, "0.5": 50, "0.7": 0, "mean": 50}
    assert scores.precision == scores.recall
    assert instance_scores([np.zeros((0, 4))], true) == InstanceScores({"0.3": 0, "0.5": 0, "0.7": 0, "mean": 0}, None)


def test_blobs_of_maps_on_frames_with_several_boxes():
    levels = np.zeros((3, 64, 64), np.uint8)
    levels[:, 4:24, 4:24] = 255
    levels[:, 40:60, 30:50] = 120  # below a half of the maximum
    pair = np.array([[4, 4, 24, 24], [30, 40, 50, 60]], np.float32)
    true = [pair, pair[:1], pair]  # the middle frame has one box and does not count
    result = instances_of_maps({"colocam": levels}, true, {"colocam": 0.5})
    assert (result.frames, result.boxes) == (2, 4)
    cells = result.methods["colocam"]
    assert cells["tags-only"].recall["mean"] == cells["one box"].recall["mean"] == 50
    assert cells["oracle-global"].recall["mean"] == 100
    assert cells["oracle-global"].threshold < 120 / 255
    assert cells["oracle-global"].precision["mean"] == 100
    found = instance_boxes(levels[:1], cells["oracle-global"].threshold)[0].boxes
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(pair, axis=0))


def test_without_such_frames_there_is_nothing_to_say():
    levels = np.zeros((1, 8, 8), np.uint8)
    assert instances_of_maps({"colocam": levels}, [np.array([[0, 0, 4, 4]])], {"colocam": 0.5}) is None
    nothing = instances_of_maps({"m": levels}, [np.array([[0, 0, 4, 4], [4, 4, 8, 8]])], {"m": 0.5})
    assert nothing.methods["m"]["one box"].recall["mean"] == 0
