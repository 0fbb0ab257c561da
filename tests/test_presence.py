from itertools import pairwise, product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from colocam import presence
from colocam.errors import ColocamError
from colocam.presence import APPEAR, LIMIT, SHARE, VANISH, Calibration, Presence, calibrate, log_odds, uncalibrated

PLAIN = Calibration(1.0, 0.0)
logit_pairs = st.lists(st.tuples(st.floats(-6, 6), st.floats(-6, 6), st.floats(-6, 6)), min_size=1, max_size=6)


def enumerated(evidence, frame):
    """P(there in ``frame``) of the hidden Markov model, as a sum over all sequences of states."""
    start = APPEAR / (APPEAR + VANISH)
    change = {(1, 1): 1 - VANISH, (1, 0): VANISH, (0, 1): APPEAR, (0, 0): 1 - APPEAR}
    weights = [0.0, 0.0]
    for states in product((0, 1), repeat=len(evidence)):
        weight = start if states[0] else 1 - start
        for before, after in pairwise(states):
            weight *= change[before, after]
        weight *= np.exp(sum(e for e, there in zip(evidence, states, strict=True) if there))
        weights[states[frame]] += weight
    return weights[1] / sum(weights)


def evidence_of(logits, tag):
    p = softmax(np.array(logits), axis=1)[:, tag]
    return SHARE * np.clip(logit(p), -LIMIT, LIMIT)


def presences(model, logits, cuts=None):
    cuts = cuts or [False] * len(logits)
    found = [p for one, cut in zip(logits, cuts, strict=True) for p in model.push(np.array(one), cut=cut)]
    return found + model.finish()


@settings(deadline=None, max_examples=40)
@given(logits=logit_pairs, lag=st.integers(0, 7), tag=st.integers(0, 2))
def test_presence_is_the_sum_over_all_sequences_of_states(logits, lag, tag):
    found = presences(Presence(PLAIN, lag, tag), logits)
    assert len(found) == len(logits)
    for frame, p in enumerate(found):
        known = evidence_of(logits[: frame + lag + 1], tag)
        assert p == pytest.approx(enumerated(known, frame), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(logits=logit_pairs, data=st.data())
def test_without_a_lag_no_later_frame_counts(logits, data):
    until = data.draw(st.integers(1, len(logits)))
    assert presences(Presence(PLAIN, 0), logits)[:until] == presences(Presence(PLAIN, 0), logits[:until])


@settings(deadline=None, max_examples=30)
@given(one=logit_pairs, two=logit_pairs, lag=st.integers(0, 5))
def test_shots_are_independent(one, two, lag):
    cuts = [False] * len(one) + [True] + [False] * (len(two) - 1)
    together = presences(Presence(PLAIN, lag), one + two, cuts)
    apart = presences(Presence(PLAIN, lag), one) + presences(Presence(PLAIN, lag), two)
    assert together == pytest.approx(apart, abs=1e-12)


def test_without_a_tag_the_likeliest_of_the_shot_counts():
    logits = [(0.0, 3.0, 0.0), (0.0, -2.0, 1.0), (0.0, 3.0, 0.0)]
    best = np.log(softmax(np.array(logits), axis=1)).sum(0).argmax()
    assert presences(Presence(PLAIN, 3), logits) == presences(Presence(PLAIN, 3, int(best)), logits)
    online = presences(Presence(PLAIN, 0), logits)
    assert online[0] == presences(Presence(PLAIN, 0, 1), logits)[0]


def test_neighbours_carry_over_a_doubtful_frame():
    sure, doubtful, against = (5.0, 0.0, 0.0), (0.0, 0.7, 0.0), (-5.0, 5.0, 0.0)
    alone = presences(Presence(PLAIN, 0, 0), [doubtful])[0]
    within = presences(Presence(PLAIN, 9, 0), [sure] * 4 + [doubtful] + [sure] * 4)[4]
    among_empty = presences(Presence(PLAIN, 9, 0), [against] * 4 + [doubtful] + [against] * 4)[4]
    assert among_empty < 0.5 < alone < within


def test_a_classifier_beyond_doubt_gives_numbers():
    for big in (1e3, 1e30):
        found = presences(Presence(PLAIN, 2, 0), [(big, 0.0, -big), (-big, 0.0, big), (big, 0.0, 0.0)])
        assert np.isfinite(found).all()
        assert 0 <= min(found) <= max(found) <= 1


@settings(deadline=None, max_examples=30)
@given(values=st.lists(st.floats(-15, 15), min_size=2, max_size=7))
def test_log_odds_are_those_of_the_softmax(values):
    np.testing.assert_allclose(log_odds(np.array(values)), logit(softmax(values)), rtol=1e-5, atol=1e-6)


def test_log_odds_keep_their_digits_and_their_shape():
    np.testing.assert_allclose(log_odds(np.array([[400.0, 0.0]])), [[400, -400]])
    assert log_odds(np.zeros((4, 5, 3))).shape == (4, 5, 3)
    np.testing.assert_allclose(log_odds(np.zeros(3)), -log(2))


def test_an_uncalibrated_classifier_that_knows_nothing_gives_no_evidence():
    slope, offset = uncalibrated(7)
    np.testing.assert_allclose(slope * log_odds(np.zeros(7)) + offset, 0, atol=1e-12)


def platt(odds, positive):
    """Balanced logistic regression on Platt's targets, by a general optimiser."""
    n, m = positive.sum(), (~positive).sum()
    target = np.where(positive, (n + 1) / (n + 2), 1 / (m + 2))
    weight = np.where(positive, 0.5 / n, 0.5 / m)

    def loss(ab):
        z = ab[0] * odds + ab[1]
        return np.sum(weight * (target * np.logaddexp(0, -z) + (1 - target) * np.logaddexp(0, z)))

    return minimize(loss, [0.5, 0.0], tol=1e-12).x


@pytest.mark.parametrize("seed", range(4))
def test_calibration_is_logistic_regression(seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(300) < 0.2
    odds = np.where(positive, rng.normal(2, 2, 300), rng.normal(-3, 3, 300))
    np.testing.assert_allclose(calibrate(odds, positive), platt(odds, positive), atol=2e-4)


def test_calibration_recovers_the_likelihood_ratio_of_two_gaussians():
    """N(2, 2²) against N(−1, 2²): the log ratio is (3/4)·ℓ − 3/8, whatever the share of positives."""
    rng = np.random.default_rng(0)
    odds = np.concatenate([rng.normal(2, 2, 20000), rng.normal(-1, 2, 60000)])
    slope, offset = calibrate(odds, np.arange(80000) < 20000)
    assert slope == pytest.approx(0.75, abs=0.02)
    assert offset == pytest.approx(-0.375, abs=0.03)


def test_separable_and_senseless_odds_have_a_finite_calibration():
    odds = np.array([-9.0, -8, -7, 7, 8, 9])
    slope, offset = calibrate(odds, odds > 0)
    assert 0 < slope < 5
    np.testing.assert_allclose(expit(slope * odds + offset), np.where(odds > 0, 0.8, 0.2), atol=0.06)
    assert calibrate(odds, odds < 0) == (0.0, 0.0)
    slope, offset = calibrate(np.full(6, 3.0), odds > 0)
    assert 3 * slope + offset == pytest.approx(0, abs=1e-5)
    with pytest.raises(ColocamError, match="frames of videos with the tag and of videos without it"):
        calibrate(odds, np.ones(6, bool))


def test_the_constants_are_probabilities():
    assert 0 < presence.VANISH < presence.APPEAR < 1
