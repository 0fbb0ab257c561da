"""Is the tagged object in the frame? From the classifier over time to a probability per frame.

The class activation map of a tag has a peak z, the largest value of Σ_k w_k A_k over the places of the frame. Where
the object is, the peak is high; without it, the peak is that of the ground, and the ground is to be seen around the
object. So the evidence a·z + b, how much more likely a frame with the object has such a peak than one without it, is
fitted to peaks of frames against peaks of their own ground: no frame needs a label (docs/method/presence.md).

A hidden Markov model with two states, there or not, adds up the evidence of neighbouring frames. Frames of one shot are
alike, so the evidence of each counts by ``SHARE`` only.
"""

from collections import deque
from itertools import takewhile
from math import exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array
from colocam.utils.jit import compiled

APPEAR, VANISH = 0.15, 0.05
"""Probability that the object appears, or vanishes, from one frame to the next."""
SHARE = 0.5
"""Part of a frame's evidence that its neighbours do not already give."""
LIMIT = 12.0
"""Evidence beyond ± this is not believed: e¹² to 1."""


class Calibration(NamedTuple):
    """Evidence = slope · peak + offset."""

    slope: float
    offset: float

    def evidence(self, peaks: npt.NDArray[np.floating]) -> Float64Array:
        """Log-odds that peaks of any shape are those of an object, within ± :data:`LIMIT`."""
        found: Float64Array = np.minimum(np.maximum(self.slope * peaks.astype(np.float64) + self.offset, -LIMIT), LIMIT)
        return found


def calibrate(peaks: Float64Array, ground: Float64Array) -> Calibration | None:
    """Fit the evidence to the peaks of frames and to those of their ground, both kinds weighing the same.

    Logistic regression by Newton's method on peaks in units of their spread, with targets moved a little inwards as
    Platt has it, so that separable peaks give no infinite slope. A slope below 0 would mean that the ground looks more
    like the tag than the object does: then no evidence remains.

    Args:
        peaks: (N,) of frames of videos with the tag, some of them perhaps without the object.
        ground: (M,) of places around the object.

    Returns:
        None where one of the two kinds is missing.
    """
    if not len(peaks) or not len(ground):
        return None
    values = np.concatenate([peaks, ground]).astype(np.float64)
    positive = np.arange(len(values)) < len(peaks)
    middle, spread = float(values.mean()), float(values.std()) or 1.0
    slope, offset = _logistic((values - middle) / spread, positive)
    return Calibration(slope / spread, offset - slope * middle / spread) if slope > 0 else Calibration(0.0, 0.0)


def _logistic(x: Float64Array, positive: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the balanced logistic regression of ``positive`` on ``x``, both (N,)."""
    count = np.array([(~positive).sum(), positive.sum()], float)
    target = np.where(positive, (count[1] + 1) / (count[1] + 2), 1 / (count[0] + 2))
    weight = np.where(positive, 0.5 / count[1], 0.5 / count[0])
    design = np.stack([x, np.ones(len(x))], axis=1)
    values = np.zeros(2)
    for _ in range(100):
        p = 1 / (1 + np.exp(-(design @ values)))
        gradient = design.T @ (weight * (p - target))
        curvature = (design * (weight * p * (1 - p))[:, None]).T @ design + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step /= max(1.0, float(np.abs(step).max()))  # far from the optimum a full step may overshoot
        values -= step
        if np.abs(step).max() < 1e-10:
            break
    return float(values[0]), float(values[1])


@compiled
def later_odds(evidence: Float64Array) -> float:
    """Log-odds that the evidence (n,) of later frames, in order, adds to the present one (the backward pass)."""
    odds = 0.0
    for one in evidence[::-1]:
        e = exp(-abs(one + odds))  # large odds come as their inverse, which does not overflow
        there, gone = (1.0, e) if one + odds > 0 else (e, 1.0)
        odds = log(((1 - VANISH) * there + VANISH * gone) / (APPEAR * there + (1 - APPEAR) * gone))
    return odds


class _Frame(NamedTuple):
    """Per class: evidence of the frame, odds given the frames so far, sum of the shot's peaks so far."""

    evidence: Float64Array
    odds: Float64Array
    total: Float64Array
    cut: bool


class Presence:
    """Probability of presence as frames arrive, each given ``lag`` frames later; shots are independent.

    Without a given tag (its index) the class with the highest peaks in the shot, as far as it is known, is followed: an
    object that the classifier takes for something else is there all the same. ``share`` of a frame's evidence counts,
    all of it where frames stand alone.
    """

    def __init__(self, calibration: Calibration, lag: int, tag: int | None = None, share: float = SHARE) -> None:
        self.calibration = calibration
        self.lag = lag
        self.tag = tag
        self.share = share
        self._last: _Frame | None = None
        self._waiting: deque[_Frame] = deque()

    def push(self, peaks: npt.NDArray[np.floating], *, cut: bool = False) -> list[float]:
        """Take the peaks (K,) of the next frame; give the presence in the frame ``lag`` before it, if there is one."""
        total = peaks.astype(np.float64)
        evidence = self.share * self.calibration.evidence(total)
        if self._last is None or cut:
            before = np.full(len(evidence), log(APPEAR / VANISH))  # as often as in the long run
        else:
            before, total = _next(self._last.odds), total + self._last.total
        self._last = _Frame(evidence, evidence + before, total, cut)
        self._waiting.append(self._last)
        return [self._decide()] if len(self._waiting) > self.lag else []

    def finish(self) -> list[float]:
        """Give the presence in the frames that are still open, in order."""
        return [self._decide() for _ in range(len(self._waiting))]

    def _decide(self) -> float:
        frame = self._waiting.popleft()
        later = list(takewhile(lambda one: not one.cut, self._waiting))
        tag = int((later[-1] if later else frame).total.argmax()) if self.tag is None else self.tag
        return _sigmoid(float(frame.odds[tag]) + later_odds(np.array([one.evidence[tag] for one in later])))


def clip_presence(peaks: npt.NDArray[np.floating], calibration: Calibration, lag: int = 16) -> Float64Array:
    """Presence (T,) in all frames of one shot from the peaks (T,) of its tag."""
    model = Presence(calibration, lag)
    early = [p for peak in peaks for p in model.push(np.array([peak]))]
    return np.array(early + model.finish())


@compiled
def _next(odds: Float64Array) -> Float64Array:
    """Log-odds one frame later, before that frame is seen."""
    p = 1 / (1 + np.exp(-odds))
    p = p * (1 - VANISH) + (1 - p) * APPEAR
    return np.log(p) - np.log1p(-p)


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))
