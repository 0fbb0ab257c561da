"""Several objects over frames that were made by hand: no model, no video."""

from dataclasses import replace

import numpy as np
import pytest

from colocam.evaluation.metrics import steadiness
from colocam.temporal.path import NONE
from colocam.temporal.presence import Presence
from colocam.temporal.smoothing import GAP, OFFLINE, ONLINE, steady
from colocam.types import ObjectMask
from tests.helpers.observations import PLAIN, moved, observation

LEFT, RIGHT, LOW = (10, 10, 30, 30), (60, 10, 80, 30), (30, 60, 50, 80)
BOTH = pytest.mark.parametrize("ahead", [OFFLINE, ONLINE], ids=["offline", "online"])


def followed(observations, ahead):
    """For each frame its objects: track → box."""
    frames = {}
    for one in steady(observations, ahead, Presence(PLAIN, ahead.path), instances=True):
        objects = frames.setdefault(one.frame.index, {})
        if one.box is not None:
            assert one.track not in objects
            objects[one.track] = one.box
    assert list(frames) == sorted(frames)
    return list(frames.values())


@BOTH
def test_each_object_keeps_its_number_whatever_the_order_of_the_blobs(ahead):
    rng = np.random.default_rng(0)
    paths = [[moved(LEFT, 0.5 * t) for t in range(30)], [moved(RIGHT, -0.5 * t, t) for t in range(30)]]
    observations = [observation(t, *rng.permutation([path[t] for path in paths])) for t in range(30)]
    found = followed(observations, ahead)
    assert [set(objects) for objects in found] == [{0, 1}] * 30
    for track in (0, 1):
        boxes = np.array([objects[track] for objects in found])
        own = min(paths, key=lambda path: np.abs(boxes[0] - path[0]).sum())
        # Straight motion is left as it is; without look-ahead boxes trail behind, by less than a frame.
        assert np.abs(boxes - own).max() < (1e-6 if ahead.smooth else 1)


@BOTH
def test_boxes_of_every_track_tremble_less(ahead):
    rng = np.random.default_rng(1)
    seen = [[np.add(box, rng.normal(0, 1.5, 4)) for box in (LEFT, RIGHT, LOW)] for _ in range(40)]
    found = followed([observation(t, *boxes) for t, boxes in enumerate(seen)], ahead)
    for track in range(3):
        before = steadiness([np.array([boxes[track] for boxes in seen])])
        after = steadiness([np.array([objects[track] for objects in found])])
        assert after.jitter < 0.6 * before.jitter


@BOTH
def test_a_cut_ends_all_tracks(ahead):
    observations = [observation(t, LEFT, RIGHT) for t in range(8)] + [
        observation(8 + t, LEFT, RIGHT, cut=t == 0) for t in range(8)
    ]
    assert [set(objects) for objects in followed(observations, ahead)] == [{0, 1}] * 8 + [{2, 3}] * 8


def test_a_short_absence_is_filled_in_and_a_long_one_ends_the_track():
    for length in (1, GAP, GAP + 1):
        away = range(8, 8 + length)
        observations = [observation(t, LEFT, *([] if t in away else [moved(RIGHT, 0, t)])) for t in range(28)]
        found = followed(observations, OFFLINE)
        if length <= GAP:
            assert [set(objects) for objects in found] == [{0, 1}] * 28
            np.testing.assert_allclose([objects[1] for objects in found], [moved(RIGHT, 0, t) for t in range(28)])
        else:
            assert [set(found[t]) for t in away] == [{0}] * length
            assert set(found[away.stop]) == {0, 2}


def test_online_the_last_box_is_held_for_a_while():
    observations = [observation(t, LEFT, *([RIGHT] if t < 10 else [])) for t in range(25)]
    found = followed(observations, ONLINE)
    assert [1 in objects for objects in found] == [t < 10 + GAP for t in range(25)]
    np.testing.assert_allclose(found[12][1], RIGHT)


def test_a_flicker_is_left_out_offline_and_not_held_online():
    observations = [observation(t, LEFT, *([RIGHT] if t == 12 else [])) for t in range(25)]
    assert [set(objects) for objects in followed(observations, OFFLINE)] == [{0}] * 25
    assert [1 in objects for objects in followed(observations, ONLINE)] == [t == 12 for t in range(25)]
    observations = [observation(t, *([RIGHT, LEFT] if t == 12 else [LEFT])) for t in range(25)]
    assert set(followed(observations, OFFLINE)[12]) == {0, 1}  # the best box is never a flicker


@BOTH
def test_frames_without_a_blob_are_there_without_a_box(ahead):
    observations = [observation(t, *([LEFT, RIGHT] if t < 3 else [])) for t in range(20)]
    out = list(steady(observations, ahead, Presence(PLAIN, ahead.path), instances=True))
    assert sorted({one.frame.index for one in out}) == list(range(20))
    last = [one for one in out if one.frame.index == 19]
    assert [(one.box, one.track, one.choice) for one in last] == [(None, None, NONE)]


def scored(time, score, *boxes):
    one = observation(time, *boxes)
    one.candidates = one.candidates._replace(scores=np.array([0.9, score][: len(boxes)]))
    return one


@BOTH
def test_the_score_of_a_track_is_a_mean_over_time_that_nearer_frames_lead(ahead):
    away = {12, 13}
    observations = [
        scored(t, 0.8 if t >= 10 else 0.5, LEFT, *([] if t in away else [moved(RIGHT, 0.5 * t)])) for t in range(25)
    ]
    scores = {}
    for one in steady(observations, ahead, Presence(PLAIN, ahead.path), instances=True):
        scores.setdefault(one.track, []).append(one.score)
    np.testing.assert_allclose(scores[0], 0.9)
    own = scores[1]
    assert len(own) == 25  # the gap too
    assert (np.diff(own[:11]) >= -1e-12).all()
    assert own[0] == pytest.approx(0.5)
    assert own[24] == pytest.approx(0.8)
    assert 0.5 < own[10] < 0.8
    assert 0.5 < own[12] <= 0.8


def test_an_object_that_jumps_is_not_smeared_over_its_way():
    """Boxes that half overlap from frame to frame: neighbors that do not fit the frame's own box count little."""
    path = [moved(RIGHT, 0, 0 if t % 4 < 2 else 10) for t in range(24)]
    found = followed([observation(t, LEFT, path[t]) for t in range(24)], OFFLINE)
    assert max(np.abs(found[t][1] - path[t]).max() for t in range(6, 18)) < 2


@BOTH
def test_fast_objects_that_pass_each_other_keep_their_numbers(ahead):
    """Each box overlaps the last one of the other object, not its own; only its motion tells where it belongs."""
    step = 12
    to_right = [(10 + step * t, 10, 30 + step * t, 30) for t in range(9)]
    to_left = [(110 - step * t, 14, 130 - step * t, 34) for t in range(9)]
    observations = [
        observation(t, *((to_right[t], to_left[t]) if t % 2 else (to_left[t], to_right[t]))) for t in range(9)
    ]
    found = followed(observations, ahead)
    assert [set(objects) for objects in found] == [{0, 1}] * 9
    first = 0 if abs(found[0][0][0] - 10) < 1 else 1
    centers = [(objects[first][0] + objects[first][2]) / 2 for objects in found]
    assert (np.diff(centers) > 0).all()


@BOTH
def test_an_object_that_falls_apart_for_a_frame_keeps_its_number(ahead):
    whole, upper, lower = (30, 10, 60, 80), (30, 10, 60, 45), (30, 50, 60, 80)
    found = followed([observation(t, *([upper, lower] if t == 10 else [whole])) for t in range(20)], ahead)
    assert all(0 in objects for objects in found)
    assert all(set(objects) == {0} for objects in found[12 + GAP :])


@BOTH
def test_boxes_of_frames_without_the_object_are_left_out(ahead):
    """The object leaves after 15 frames; then the map lights up here and there."""
    rng = np.random.default_rng(2)
    observations = []
    for t in range(40):
        one = scored(t, 0.0, LEFT if t < 15 else moved(LEFT, *rng.uniform(0, 60, 2)))
        observations.append(replace(one, peaks=np.full(3, 6.0 if t < 15 else -6.0)))
    found = followed(observations, ahead)
    assert all(len(objects) == 1 for objects in found[:15])
    assert not any(found[15 + GAP + 1 :])


@BOTH
@pytest.mark.parametrize(
    ("score", "masks", "shown"), [(0.5, False, True), (0.25, False, False), (0.25, True, True), (0.05, True, False)]
)
def test_a_track_far_below_the_best_one_is_no_object(ahead, score, masks, shown):
    """Of the best score, 0.9, regions need 0.4 and masks 0.1."""
    mask = ObjectMask(np.array(LEFT, float), np.ones((20, 20), bool), 0.9)
    observations = [
        replace(scored(t, score, LEFT, RIGHT), peaks=np.full(3, 6.0), masks=[mask] * 2 * masks) for t in range(20)
    ]
    assert [set(objects) for objects in followed(observations, ahead)] == [{0, 1} if shown else {0}] * 20
