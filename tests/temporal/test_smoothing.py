"""Stages over frames that were made by hand: no model, no video."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.evaluation.metrics import steadiness
from colocam.temporal.path import NONE
from colocam.temporal.presence import Calibration, Presence
from colocam.temporal.smoothing import (
    GAP,
    MEMORY,
    OFFLINE,
    ONLINE,
    REACH,
    SHARPNESS_ONLINE,
    WIDTH,
    LookAhead,
)
from colocam.temporal.smoothing import steady as steady_with
from tests.helpers.observations import PLAIN, moved, observation

LEFT, RIGHT = (10, 10, 30, 30), (60, 60, 80, 80)


def steady(observations, ahead, **options):
    return steady_with(observations, ahead, Presence(PLAIN, ahead.path), **options)


def boxes_of(observations):
    return np.array([np.full(4, np.nan) if one.box is None else one.box for one in observations])


@pytest.mark.parametrize("ahead", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_box_that_trembles_is_calmed_and_keeps_up_with_motion(ahead):
    rng = np.random.default_rng(0)
    true = [moved(LEFT, 1.5 * t) for t in range(40)]
    seen = [tuple(np.add(box, rng.normal(0, 1.5, 4))) for box in true]
    found = boxes_of(steady([observation(t, box) for t, box in enumerate(seen)], ahead))
    before, after = steadiness([np.array(seen)]), steadiness([found])
    assert after.jitter < 0.6 * before.jitter
    bias = (found - np.array(true)).mean(0)
    # Of 1.5 pixels a frame; without look-ahead it trails behind by about a frame.
    assert np.abs(bias).max() < (0.7 if ahead.smooth else 2.0)
    assert np.abs(found - bias - np.array(true)).mean() < np.abs(np.array(seen) - np.array(true)).mean()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=9))
def test_boxes_count_by_their_score_in_the_frame_online(steps):
    """Maps are the boxes themselves, so that a score is the overlap of two sets of pixels."""
    boxes = [moved(LEFT, *step) for step in steps]
    found = boxes_of(steady([observation(t, box) for t, box in enumerate(boxes)], ONLINE))

    def pixels(box):
        return {(x, y) for x in range(box[0], box[2] + 1) for y in range(box[1], box[3] + 1)}

    for now, box in enumerate(found):
        near = range(max(0, now - REACH), now + 1)
        shared = [len(pixels(boxes[now]) & pixels(boxes[t])) / len(pixels(boxes[now]) | pixels(boxes[t])) for t in near]
        weight = [
            o**SHARPNESS_ONLINE * np.exp(-0.5 * ((t - now) / WIDTH) ** 2) for o, t in zip(shared, near, strict=True)
        ]
        np.testing.assert_allclose(box, np.average([boxes[t] for t in near], axis=0, weights=weight), atol=1e-6)


@pytest.mark.parametrize("ahead", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_cut_is_not_smoothed_over_and_begins_a_track(ahead):
    near = moved(LEFT, 8)  # overlaps, so that only the cut tells them apart
    observations = [observation(t, LEFT) for t in range(8)] + [observation(8 + t, near, cut=t == 0) for t in range(8)]
    found = list(steady(observations, ahead))
    np.testing.assert_allclose(boxes_of(found), [LEFT] * 8 + [near] * 8, atol=1e-6)
    assert [one.track for one in found] == [0] * 8 + [1] * 8
    assert [one.cut for one in found] == [False] * 8 + [True] + [False] * 7
    blurred = boxes_of(steady([observation(t, LEFT if t < 8 else near) for t in range(16)], ahead))
    assert not np.allclose(blurred, boxes_of(found))


@pytest.mark.parametrize("bad", [RIGHT, (10, 10, 90, 80)], ids=["elsewhere", "run together with another thing"])
def test_one_bad_frame_is_filled_in(bad):
    observations = [observation(t, moved(LEFT, t) if t != 9 else bad) for t in range(20)]
    offline = list(steady(observations, OFFLINE))
    np.testing.assert_allclose(boxes_of(offline), [moved(LEFT, t) for t in range(20)], atol=1e-6)
    assert {one.track for one in offline} == {0}
    assert offline[9].choice == NONE


@pytest.mark.parametrize("ahead", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_dense_part_does_not_replace_the_object(ahead):
    shell = (14, 12, 26, 26)
    observations = [observation(t, LEFT, shell, score=(0.4, 0.9), thresholds=(0.2, 0.4)) for t in range(20)]
    np.testing.assert_allclose(boxes_of(steady(observations, ahead)), [LEFT] * 20, atol=1e-6)


@pytest.mark.parametrize("ahead", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_published_box_that_flickers_is_settled_and_one_that_stays_away_is_followed(ahead):
    flicker = [observation(t, *((LEFT, RIGHT) if t % 2 == 0 else (RIGHT, LEFT))) for t in range(30)]
    assert len(np.unique(boxes_of(steady(flicker, ahead)).round(6), axis=0)) == 1
    away = [observation(t, *((LEFT, RIGHT) if t < 10 else (RIGHT, LEFT))) for t in range(30)]
    followed = list(steady(away, ahead))
    np.testing.assert_allclose(boxes_of(followed)[18:], [RIGHT] * 12, atol=1e-6)
    assert (followed[0].track, followed[-1].track) == (0, 1)  # another place is another track


def test_a_short_absence_continues_the_track_and_a_long_one_ends_it():
    def video(length):
        return [observation(t, *([] if 5 <= t < 5 + length else [LEFT])) for t in range(25)]

    for length in range(1, GAP + 1):
        found = list(steady(video(length), OFFLINE))
        assert [one.track for one in found] == [0] * 25, length
        np.testing.assert_allclose(boxes_of(found), [LEFT] * 25, atol=1e-6)
    found = list(steady(video(GAP + 1), OFFLINE))
    assert [one.track for one in found] == [0] * 5 + [None] * (GAP + 1) + [1] * (25 - 6 - GAP)
    assert [one.box is None for one in found] == [one.track is None for one in found]
    online = list(steady(video(GAP + 3), ONLINE))
    assert [one.track for one in online] == [0] * (5 + GAP) + [None] * 3 + [1] * (25 - 8 - GAP)


def test_nothing_is_held_across_a_cut():
    observations = [observation(t, LEFT) for t in range(6)] + [observation(6, cut=True), observation(7)]
    for ahead in (ONLINE, OFFLINE):
        assert [one.box is None for one in steady(observations, ahead)] == [False] * 6 + [True] * 2


place = st.integers(0, 60).flatmap(lambda x: st.integers(0, 60).map(lambda y: (x, y, x + 20, y + 25)))
frames = st.lists(st.tuples(st.lists(place, max_size=3), st.booleans()), min_size=1, max_size=14)


def made(video):
    return [observation(t, *boxes, cut=red and t > 0) for t, (boxes, red) in enumerate(video)]


@settings(deadline=None, max_examples=20)
@given(video=frames, data=st.data())
def test_online_knows_no_future(video, data):
    until = data.draw(st.integers(1, len(video)))
    whole, part = list(steady(made(video), ONLINE)), list(steady(made(video[:until]), ONLINE))
    np.testing.assert_array_equal(boxes_of(whole[:until]), boxes_of(part))
    assert [(one.track, one.cut) for one in whole[:until]] == [(one.track, one.cut) for one in part]


@settings(deadline=None, max_examples=20)
@given(video=frames, cuts=st.integers(0, 3), path=st.integers(0, 5), after=st.integers(0, 6), instances=st.booleans())
def test_frames_come_back_in_order_no_later_than_the_look_ahead(video, cuts, path, after, instances):
    taken, given_back = [], []

    def counted():
        for one in made(video):
            taken.append(one)
            yield one

    for one in steady(counted(), LookAhead(cuts, path, after), instances=instances):
        given_back.append(one.frame.index)
        assert len(taken) <= one.frame.index + 1 + cuts + path + after
        assert (one.box is None) == (one.track is None)
        if one.box is not None:
            assert np.isfinite(one.box).all()
            assert one.box[0] < one.box[2]
            assert one.box[1] < one.box[3]
    assert given_back == sorted(given_back)
    assert set(given_back) == set(range(len(video)))
    assert instances or len(given_back) == len(video)


def classified(time, probabilities, peaks=(4.0, 4.0, 4.0), *, cut=False):
    one = observation(time, LEFT, cut=cut)
    one.probabilities, one.peaks = np.array(probabilities, np.float32), np.array(peaks, np.float32)
    return one


@settings(deadline=None, max_examples=30)
@given(
    chances=st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=30),
    cut=st.integers(1, 30),
    peak=st.floats(-3, 3),
)
def test_the_class_is_that_of_the_most_votes_in_the_shot(chances, cut, peak):
    """Against the sum written out: votes of frames k before the last known one count (1 − 1/M)^k."""
    given = np.array(chances) / np.sum(chances, 1, keepdims=True)
    peaks = np.array([peak, 0.5, -0.5])
    shown = [classified(t, one, peaks, cut=t == cut) for t, one in enumerate(given)]
    weight = 1 / (1 + np.exp(-(2 * peaks - 1)))
    ahead = LookAhead(cuts=0, path=4, smooth=0)
    for time, one in enumerate(steady_with(shown, ahead, Presence(Calibration(2.0, -1.0), ahead.path))):
        first, end = (0, min(cut, len(given))) if time < cut else (cut, len(given))
        last = min(time + 4, end - 1)
        votes = sum((1 - 1 / MEMORY) ** (last - t) * given[t] * weight for t in range(first, last + 1))
        assert votes[one.tag] == pytest.approx(votes.max(), rel=1e-4)
        np.testing.assert_allclose(one.shares, votes / votes.sum(), rtol=1e-4)
