from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.boxes.candidates import Candidates
from colocam.temporal.path import HOLD, JUMP, NONE, TRUST, BestPath, margin, smooth_box

corner = st.integers(0, 6)
box = st.tuples(corner, corner, st.integers(1, 5), st.integers(1, 5)).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)
frame = st.lists(st.tuples(box, st.floats(0, 1)), max_size=3)
videos = st.lists(frame, min_size=1, max_size=5)


def candidates(frame):
    boxes = np.array([one for one, _ in frame], float).reshape(-1, 4)
    return Candidates(boxes, np.array([score for _, score in frame], float), np.zeros(len(frame)))


def pixels(box):
    return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}


def value(video, path, cuts):
    """The objective, term by term, from the definition."""
    total = sum(video[t][x][1] + TRUST * (x == 0) for t, x in enumerate(path) if x != NONE)
    for t in range(1, len(path)):
        a, b = path[t - 1], path[t]
        if cuts[t] or (a == NONE and b == NONE):
            continue
        if NONE in {a, b}:
            total -= JUMP / 2
        else:
            one, two = pixels(video[t - 1][a][0]), pixels(video[t][b][0])
            total -= JUMP * (1 - len(one & two) / len(one | two))
    return total


@settings(deadline=None, max_examples=50)
@given(video=videos, data=st.data())
def test_the_path_is_the_best_of_all(video, data):
    cuts = np.array(data.draw(st.lists(st.booleans(), min_size=len(video), max_size=len(video))))
    path = BestPath(len(video))
    for one, cut in zip(video, cuts, strict=True):
        path.push(candidates(one), cut=bool(cut))
    found = path.finish()
    every = product(*([NONE, *range(len(frame))] for frame in video))
    assert value(video, found, cuts) == pytest.approx(max(value(video, path, cuts) for path in every), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(video=videos, lag=st.integers(0, 3), data=st.data())
def test_the_box_given_last_has_a_say(video, lag, data):
    """Frame t: of the best paths to each state known last, that of the most worth less the way from the box given."""
    cuts = data.draw(st.lists(st.booleans(), min_size=len(video), max_size=len(video)))
    path, given = BestPath(lag), None
    decided = [choice for one, cut in zip(video, cuts, strict=True) for choice in path.push(candidates(one), cut=cut)]
    for t, choice in enumerate(decided):
        given = None if cuts[t] else given

        def less(state, t=t, given=given):
            here = set() if state == NONE else pixels(video[t][state][0])
            return HOLD * (0.5 if state == NONE else 1 - len(here & given) / len(here | given)) if given else 0.0

        ends = {}
        for way in product(*([NONE, *range(len(frame))] for frame in video[: t + lag + 1])):
            ends.setdefault(way[-1], []).append((value(video[: t + lag + 1], way, cuts), way[t]))
        # Of equally good paths to a state either may have been kept.
        kept = [[(best, state) for best, state in ways if best > max(ways)[0] - 1e-9] for ways in ends.values()]
        least = max(min(best - less(state) for best, state in ways) for ways in kept)
        assert max(best - less(state) for ways in kept for best, state in ways if state == choice) > least - 1e-9
        given = given if choice == NONE else pixels(video[t][choice][0])


def test_a_long_video_loses_no_digits():
    frames = [candidates([((0, 0, 4, 4), 0.5), ((1, 0, 5, 4), 0.5 + TRUST + 1e-9)])] * 800
    path = BestPath(5)
    assert {choice for one in frames for choice in path.push(one)} == {1}
    assert len(path._open) <= 5


@pytest.mark.parametrize("damping", [0.0, 0.3, 1.0, 1e6])
def test_smoothing_is_ridge_regression(damping):
    rng = np.random.default_rng(2)
    times = np.array([-6.0, -5, -3, -2, -1, 0])
    low = rng.uniform(0, 20, (6, 2))
    boxes = np.concatenate([low, low + rng.uniform(2, 30, (6, 2))], axis=1)
    weight = np.exp(-0.5 * (times / 2.0) ** 2)
    root = np.sqrt(weight / weight.sum())
    values = np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, np.log(boxes[:, 2:] - boxes[:, :2])], axis=1)
    # The penalty of the slope is one more observation, of 0.
    design = np.append(root[:, None] * np.stack([np.ones(6), times], 1), [[0, damping**0.5]], axis=0)
    (level, _), *_ = np.linalg.lstsq(design, np.append(root[:, None] * values, np.zeros((1, 4)), axis=0))
    half = np.exp(level[2:]) / 2
    wanted = [*(level[:2] - half), *(level[:2] + half)]
    np.testing.assert_allclose(smooth_box(times, boxes, 0.0, 2.0, damping), wanted, rtol=1e-9)


def test_what_an_observation_counts_is_how_often_it_was_made():
    times = np.array([-2.0, -1, 0, 1])
    boxes = np.array([[3.0, 4, 10, 12], [4, 4, 12, 13], [9, 2, 20, 18], [5, 5, 11, 16]])
    counts = np.array([3, 0, 1, 2])
    np.testing.assert_allclose(smooth_box(np.array([2.0]), boxes[:1], 0.0, 2.5), boxes[0])
    often = smooth_box(times.repeat(counts), boxes.repeat(counts, axis=0), 0.0, 2.0)
    np.testing.assert_allclose(smooth_box(times, boxes, 0.0, 2.0, counts=counts), often)
    mean = smooth_box(times, boxes, 0.0, 1e9, np.inf)
    np.testing.assert_allclose((mean[:2] + mean[2:]) / 2, ((boxes[:, :2] + boxes[:, 2:]) / 2).mean(0))


@settings(max_examples=60, deadline=None)
@given(frame, box)
def test_margin_is_the_lead_over_the_best_box_elsewhere(listed, meant):
    def overlap(other):
        return len(pixels(meant) & pixels(other)) / len(pixels(meant) | pixels(other))

    own = max([0, *(score for one, score in listed if overlap(one) >= 0.5)])
    rival = max([0, *(score for one, score in listed if overlap(one) < 0.5)])
    assert margin(candidates(listed), np.array(meant, float)) == pytest.approx(own - rival)
