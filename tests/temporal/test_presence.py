from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from colocam.temporal.look import Look, Square
from colocam.temporal.presence import (
    APPEAR,
    FIRST,
    LIMIT,
    OTHERS,
    SHARE,
    SURE,
    VANISH,
    ZERO_OF_FRAME,
    ZERO_OF_LOOK,
    Calibration,
    Presence,
    calibrate,
    foreground_odds,
    with_foreground,
)
from colocam.temporal.zero import FEWEST

PLAIN = Calibration(1.0, 0.0)
triples = st.lists(st.tuples(st.floats(-6, 6), st.floats(-6, 6), st.floats(-6, 6)), min_size=1, max_size=6)


def enumerated(evidence, frame):
    """P(there in ``frame``) of the hidden Markov model, as a sum over all sequences of states."""
    change = {(1, 1): 1 - VANISH, (1, 0): VANISH, (0, 1): APPEAR, (0, 0): 1 - APPEAR}
    weights = [0.0, 0.0]
    for states in product((0, 1), repeat=len(evidence)):
        weight = FIRST if states[0] else 1 - FIRST
        for before, after in pairwise(states):
            weight *= change[before, after]
        weight *= np.exp(sum(e for e, there in zip(evidence, states, strict=True) if there))
        weights[states[frame]] += weight
    return weights[1] / sum(weights)


def presences(model, peaks, cuts=None, foreground=None):
    cuts = cuts or [False] * len(peaks)
    foreground = [1.0] * len(peaks) if foreground is None else foreground
    frames = zip(peaks, foreground, cuts, strict=True)
    found = [p for one, f, cut in frames for p in model.push(np.array(one), f, cut=cut)]
    return found + model.finish()


def evidence_by_hand(peaks, tag, odds, slope=1.0, offset=0.0):
    """Of one frame, before the zeros of its shot."""
    own = (1 - OTHERS) * peaks[tag] + OTHERS * max(peaks)
    return -np.log(np.exp(-np.clip(slope * own + offset, -LIMIT, LIMIT)) + np.exp(-odds))


@settings(max_examples=40)
@given(peaks=triples, lag=st.integers(0, 7), tag=st.integers(0, 2), slope=st.floats(0.1, 3), offset=st.floats(-3, 3))
def test_presence_is_the_sum_over_all_sequences_of_states(peaks, lag, tag, slope, offset):
    """Over the frames that are known ``lag`` frames later."""
    found = presences(Presence(Calibration(slope, offset), lag, tag), peaks)
    assert len(found) == len(peaks)
    for frame, p in enumerate(found):
        known = [
            SHARE * evidence_by_hand(one, tag, np.log(255) - ZERO_OF_FRAME, slope, offset)
            for one in peaks[: frame + lag + 1]
        ]
        assert p == pytest.approx(enumerated(known, frame), abs=1e-9)


@settings(max_examples=30)
@given(one=triples, two=triples, lag=st.integers(0, 5))
def test_shots_are_independent(one, two, lag):
    cuts = [False] * len(one) + [True] + [False] * (len(two) - 1)
    together = presences(Presence(PLAIN, lag), one + two, cuts)
    apart = presences(Presence(PLAIN, lag), one) + presences(Presence(PLAIN, lag), two)
    assert together == pytest.approx(apart, abs=1e-12)


def test_without_a_tag_the_class_with_the_highest_peaks_of_the_shot_is_followed():
    peaks = [
        (1.0, 3.0, 0.0),
        (1.0, -4.0, 0.0),
        (1.5, 3.0, 0.0),
        (1.0, 0.5, 4.0),
    ]  # sums 1 2 3.5 4.5, 3 -1 2 2.5, 0 0 0 4
    assert presences(Presence(PLAIN, 3), peaks)[0] == presences(Presence(PLAIN, 3, 0), peaks)[0]
    followed = (1, 0, 0, 0)  # as far as the shot is known
    online = [presences(Presence(PLAIN, 0, tag), peaks)[frame] for frame, tag in enumerate(followed)]
    assert presences(Presence(PLAIN, 0), peaks) == online
    after_a_cut = presences(Presence(PLAIN, 0), [(9.0, 0.0), (0.0, 1.0)], [False, True])
    assert after_a_cut[1] == presences(Presence(PLAIN, 0, 1), [(0.0, 1.0)])[0]


@settings(max_examples=60)
@given(e=st.floats(-LIMIT, LIMIT), f=st.floats(0.01, 0.99))
def test_the_odds_against_an_object_add_up(e, f):
    """The class looks wrong, or the decoder sees nothing: each has odds of its own against an object."""
    (found,) = with_foreground(np.array([e]), foreground_odds(f))
    against = np.exp(-e) + np.exp(ZERO_OF_FRAME) * (1 - f) / f
    assert found == pytest.approx(np.clip(-np.log(against), -LIMIT, LIMIT), abs=1e-9)
    assert found <= e + 1e-9
    assert found <= with_foreground(np.array([e]), foreground_odds(min(1.0, f + 0.1)))[0] + 1e-9


def test_a_map_says_no_more_than_its_levels():
    assert foreground_odds(np.array([0.0, 1e-30, 1.0]), 0.0).tolist() == [-SURE, -SURE, SURE]
    assert foreground_odds(254 / 255, 0.0) == pytest.approx(np.log(254))


def test_a_second_look_counts_half_as_much_as_the_frame():
    """Of each class the higher peak, and a weighted mean of both log-odds of a foreground."""
    frame, again = (0.5, 2.0, -1.0), (1.5, -3.0, 0.0)
    look = Look(Square(0, 0, 8), np.zeros((8, 8), np.uint8), np.zeros((0, 4)), np.array(again), 0.97)
    model = Presence(PLAIN, 0, 0, share=1.0)
    (found,) = model.push(np.array(frame), 0.6, look)
    odds = (2 * (np.log(0.6 / 0.4) - ZERO_OF_FRAME) + np.log(0.97 / 0.03) - ZERO_OF_LOOK) / 3
    evidence = evidence_by_hand((1.5, 2.0, 0.0), 0, odds)
    assert found == pytest.approx(expit(evidence + np.log(FIRST / (1 - FIRST))))


def scene(odds_when_empty, odds_when_present, peak=3.0):
    """A shot of 12 empty frames, 12 with the object and 12 empty ones: peaks, foreground, and which have it."""
    present = np.repeat([False, True, False], 12)
    odds = np.where(present, odds_when_present, odds_when_empty) + 0.2 * np.cos(np.arange(36))
    return [(peak, 0.0)] * 36, expit(odds + ZERO_OF_FRAME), present


def test_a_scene_that_looks_like_an_object_does_not_hide_when_the_object_is_there():
    """Its empty frames say what the decoder sees without the object, once the object was there too."""
    shots = [scene(low, low + 4.2) for low in (-0.7, -0.2, 0.3)]
    found = np.array([presences(Presence(PLAIN, 36, 0), *shot[:1], foreground=shot[1]) for shot in shots])
    present = shots[0][2]
    np.testing.assert_allclose(found, found[:1].repeat(3, axis=0), atol=0.02)
    assert found[:, present].min() > 0.5
    assert (found[:, ~present] < 0.5).mean() > 0.7  # those beside the object are smoothed over
    assert found[:, ~present].mean() < 0.45
    assert found[:, present].mean() > 0.9


def test_the_classifier_has_a_zero_of_its_own_in_a_shot():
    """A background that looks like the class to the classifier, where the decoder is always sure."""
    present = np.repeat([True, False], 16)
    peaks = [(5.5 if there else 0.8, 0.0) for there in present]
    found = np.array(presences(Presence(PLAIN, 36, 0), peaks))
    assert ((found > 0.5) == present).mean() > 0.7  # those beside the object are smoothed over
    assert found[-1] < 0.5
    always = presences(Presence(PLAIN, 36, 0), [(0.8, 0.0)] * 32)  # nothing to compare with: the object is believed
    assert min(always) > 0.5


def test_an_object_in_every_frame_is_kept():
    """Frames that differ a little, or a few that are worse, do not make the others empty."""
    rng = np.random.default_rng(0)
    for low in (1.0, 2.0, 3.0):
        foreground = expit(rng.normal(low, 0.7, 60) + ZERO_OF_FRAME)
        found = presences(Presence(PLAIN, 16, 0), [(4.0, 0.0)] * 60, foreground=foreground)
        assert min(found) > 0.5


def test_zeros_use_the_frames_known_so_far_and_no_others():
    peaks, foreground, _ = scene(0.6, 4.0)
    lag = 5
    whole = presences(Presence(PLAIN, lag, 0), peaks, foreground=foreground)
    for known in (FEWEST, 14, 20, 30):
        first = presences(Presence(PLAIN, lag, 0), peaks[:known], foreground=foreground[:known])
        assert first[: known - lag] == whole[: known - lag]
        assert known == 30 or first != whole[:known]


def test_a_classifier_beyond_doubt_gives_numbers():
    for big in (1e3, 1e30):
        found = presences(Presence(PLAIN, 2, 0), [(big, 0.0, -big), (-big, 0.0, big), (big, 0.0, 0.0)])
        assert np.isfinite(found).all()
        assert 0 <= min(found) <= max(found) <= 1


def platt(odds, positive):
    """Balanced logistic regression on Platt's targets, by a general optimizer."""
    n, m = positive.sum(), (~positive).sum()
    target = np.where(positive, (n + 1) / (n + 2), 1 / (m + 2))
    weight = np.where(positive, 0.5 / n, 0.5 / m)

    def loss(ab):
        z = ab[0] * odds + ab[1]
        return np.sum(weight * (target * np.logaddexp(0, -z) + (1 - target) * np.logaddexp(0, z)))

    return minimize(loss, [0.5, 0.0], tol=1e-12).x


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_calibration_is_logistic_regression(seed, scale):
    """Also where a network's peaks are tiny or huge: the evidence is the same."""
    rng = np.random.default_rng(seed)
    peaks, ground = rng.normal(2, 2, 60), rng.normal(-3, 3, 240)
    slope, offset = calibrate(scale * peaks, scale * ground)
    wanted = platt(np.concatenate([peaks, ground]), np.arange(300) < 60)
    np.testing.assert_allclose((slope * scale, offset), wanted, atol=2e-4)


def test_separable_and_senseless_peaks_have_a_finite_calibration():
    high, low = np.array([7.0, 8, 9]), np.array([-9.0, -8, -7])
    slope, offset = calibrate(high, low)
    assert 0 < slope < 5
    np.testing.assert_allclose(expit(slope * high + offset), 0.8, atol=0.06)
    np.testing.assert_allclose(expit(slope * low + offset), 0.2, atol=0.06)
    assert calibrate(low, high) == (0.0, 0.0)
    assert calibrate(high, low[:0]) is calibrate(high[:0], low) is None
    slope, offset = calibrate(np.full(3, 3.0), np.full(3, 3.0))
    assert 3 * slope + offset == pytest.approx(0, abs=1e-5)
