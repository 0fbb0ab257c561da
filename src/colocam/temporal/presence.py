"""Presence: the probability that the tagged object is in a frame.

The class activation map of a tag has a peak z, the maximum of Σ_k w_k A_k over the frame. The peak is high where the
object is visible; otherwise it is a peak of the background, which is also visible around the object. So the evidence
a·z + b, the log-likelihood ratio of such a peak with and without the object, is fitted to the peaks of frames against
the peaks of their own background. No frame needs a label. A classifier may take the object for one of another class, so
the highest peak of all classes counts a little for each.

The classifier also knows the scene: water looks like a boat to it. The decoder draws the object alone, so the mean f of
the highest pixels of its map (:mod:`colocam.maps.foreground`) is a second sign. An object is there only where the class
looks right *and* the decoder sees a foreground, so the odds against it add up:

    evidence = −ln(e^−(a·z + b − c) + e^−(m − d)),  m = ln(f / (1 − f)) − ZERO_OF_FRAME

where c and d are the zeros of the shot (:mod:`colocam.temporal.zero`). A second look sees a small object better than
the frame does: z takes the higher of a class's two peaks, and m is the weighted mean of both looks.

A hidden Markov model with two states, present and absent, combines the evidence of neighboring frames. Frames of one
shot are similar, so the evidence of each frame is multiplied by ``SHARE``.
"""

from collections import deque
from itertools import takewhile
from math import exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.temporal.look import Look
from colocam.temporal.zero import ShotZeros
from colocam.types import Float64Array

APPEAR, VANISH = 0.12, 0.08
"""Transition probabilities of the object from one frame to the next: absent → present, present → absent."""
FIRST = 0.75
"""Probability of the object in the first frame of a shot, before anything is seen."""
SHARE = 0.5
"""Share of a frame's evidence that is independent of its neighbors."""
LIMIT = 12.0
"""Bound of the evidence, in log-odds."""
ABSENT = 0.5
"""Presence below which a frame is believed to be empty, where nobody says another value."""
OTHERS = 0.2
"""Share of the highest peak of all classes in the peak of each."""
ZERO_OF_FRAME, ZERO_OF_LOOK = 0.75, 2.25
"""Log-odds of the foreground that mean nothing, in the map of a frame and in that of a second look.

Decoders draw something in every frame, and more of it in a part of the frame that was chosen for it.
"""
ABOVE_CLASS, ABOVE_FRAME = 0.75, 0.5
"""How far zero lies above the evidence of a shot's empty frames: of the class, and of the foreground."""
OF_LOOK = 1 / 3
"""Share of a second look in the evidence of a foreground."""
SURE = log(255)
"""Bound of a map's log-odds: its levels cannot say more."""


class Calibration(NamedTuple):
    """Evidence of the classifier = slope · peak + offset."""

    slope: float
    offset: float

    @classmethod
    def of(cls, stored: tuple[float, float] | None) -> "Calibration":
        """That of a model card; without one, the decoder alone says what is there."""
        return cls(0.0, LIMIT) if stored is None else cls(*stored)

    def evidence(self, peaks: npt.NDArray[np.floating]) -> Float64Array:
        """Log-odds that peaks (any shape) belong to an object, within ± :data:`LIMIT`."""
        evidence: Float64Array = np.minimum(
            np.maximum(self.slope * peaks.astype(np.float64) + self.offset, -LIMIT), LIMIT
        )
        return evidence


def shared_peaks(peaks: npt.NDArray[np.floating]) -> Float64Array:
    """Peaks (…, K), each moved toward the highest one of all classes by :data:`OTHERS`."""
    values = peaks.astype(np.float64)
    shared: Float64Array = values + OTHERS * (values.max(-1, keepdims=True) - values)
    return shared


def foreground_odds(foreground: float | npt.NDArray[np.floating], zero: float = ZERO_OF_FRAME) -> Float64Array:
    """Log-odds m of a foreground: ln(f / (1 − f)) within ± :data:`SURE`, less ``zero``; f is 0–1, of any shape."""
    f = np.minimum(np.maximum(np.asarray(foreground, np.float64), 1e-9), 1 - 1e-9)
    odds: Float64Array = np.minimum(np.maximum(np.log(f / (1 - f)), -SURE), SURE) - zero
    return odds


def with_foreground(evidence: Float64Array, odds: float | npt.NDArray[np.floating]) -> Float64Array:
    """Log-odds that the class looks right and the decoder sees a foreground: −ln(e^−evidence + e^−odds).

    Args:
        evidence: of the classifier.
        odds: of a foreground, of a shape that fits.

    Returns:
        At least −:data:`LIMIT`.
    """
    both: Float64Array = np.maximum(-np.logaddexp(-evidence, -np.asarray(odds)), -LIMIT)
    return both


def calibrate(peaks: Float64Array, background: Float64Array) -> Calibration | None:
    """Fit the evidence to the peaks of frames against the peaks of their background, both sets with the same weight.

    Logistic regression by Newton's method on standardized peaks, with Platt's smoothed targets, so that separable peaks
    give a finite slope. A negative slope would mean that the background looks more like the tag than the object does;
    the evidence is then 0.

    Args:
        peaks: (N,) peaks of frames of videos with the tag, some of them possibly without the object.
        background: (M,) peaks of the background around the object.

    Returns:
        None where one of the two sets is empty.
    """
    if not len(peaks) or not len(background):
        return None
    values = np.concatenate([peaks, background]).astype(np.float64)
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


def absent_below(asked: float | None) -> float:
    """The presence below which a frame is believed to be empty: as asked, or :data:`ABSENT`."""
    return ABSENT if asked is None else asked


def later_odds(evidence: list[float]) -> float:
    """Log-odds that the evidence of later frames adds to the current frame (the backward pass)."""
    odds = 0.0
    for value in reversed(evidence):
        e = exp(-abs(value + odds))  # the smaller of the two, which cannot overflow
        there, gone = (1.0, e) if value + odds > 0 else (e, 1.0)
        odds = log(((1 - VANISH) * there + VANISH * gone) / (APPEAR * there + (1 - APPEAR) * gone))
    return odds


class _Frame(NamedTuple):
    """A frame that waits for its presence.

    Attributes:
        signs: (K + 1,) evidence of each class, then of a foreground, before the zeros of the shot.
        total: (K,) sum of the shot's peaks so far.
        cut: whether a shot begins here.
        shot: what is known of its shot, also from later frames.
    """

    signs: Float64Array
    total: Float64Array
    cut: bool
    shot: ShotZeros


class Presence:
    """Probability of presence as frames arrive, each known ``lag`` frames later; shots are independent.

    ``tag`` is the index of the class. Without it the class with the highest peaks in the shot so far is used, since an
    object that the classifier confuses with another class is present all the same. The evidence of a frame is
    multiplied by ``share``; 1 where each frame stands alone.
    """

    def __init__(self, calibration: Calibration, lag: int, tag: int | None = None, share: float = SHARE) -> None:
        self.calibration = calibration
        self.lag = lag
        self.tag = tag
        self.share = share
        self._last: _Frame | None = None
        self._odds: Float64Array | None = None  # of the frame that was decided last
        self._waiting: deque[_Frame] = deque()

    def push(
        self,
        peaks: npt.NDArray[np.floating],
        foreground: float = 1.0,
        look: Look | None = None,
        *,
        cut: bool = False,
    ) -> list[float]:
        """Add the next frame; return the presence in the frame ``lag`` before it, if there is one.

        Args:
            peaks: (K,) maxima of the classes' activation maps.
            foreground: of the decoder's map, 0–1 (:mod:`colocam.maps.foreground`).
            look: the second look at this frame; None: there is none.
            cut: whether the frame begins a new shot.
        """
        total = peaks.astype(np.float64)
        seen = total
        odds = float(foreground_odds(foreground))
        if look is not None:
            seen = np.maximum(total, look.peaks)
            odds += OF_LOOK * (float(foreground_odds(look.foreground, ZERO_OF_LOOK)) - odds)
        signs = np.append(self.calibration.evidence(shared_peaks(seen)), odds)
        if self._last is None or cut:
            shot = ShotZeros(np.append(np.full(len(peaks), ABOVE_CLASS), ABOVE_FRAME))
        else:
            shot, total = self._last.shot, total + self._last.total
        shot.add(signs)
        self._last = _Frame(signs, total, cut, shot)
        self._waiting.append(self._last)
        return [self._decide()] if len(self._waiting) > self.lag else []

    def finish(self) -> list[float]:
        """Return the presence in the frames that are not decided yet, in order."""
        return [self._decide() for _ in range(len(self._waiting))]

    def _decide(self) -> float:
        frame = self._waiting.popleft()
        later = list(takewhile(lambda one: not one.cut, self._waiting))
        last = later[-1] if later else frame
        tag = int(last.total.argmax()) if self.tag is None else self.tag
        before = log(FIRST / (1 - FIRST)) if self._odds is None or frame.cut else _next(self._odds)
        zeros = frame.shot.zeros
        signs = frame.signs - zeros
        self._odds = before + self.share * with_foreground(signs[:-1], signs[-1])
        odds = float(self._odds[tag])
        if later:
            coming = np.array([one.signs for one in later]) - zeros
            odds += later_odds((self.share * with_foreground(coming[:, tag], coming[:, -1])).tolist())
        return 1 / (1 + exp(-odds))  # the evidence is bounded


def _next(odds: Float64Array) -> Float64Array:
    """Predicted log-odds of the next frame."""
    p = 1 / (1 + np.exp(-odds))
    p = p * (1 - VANISH) + (1 - p) * APPEAR
    return np.log(p) - np.log1p(-p)
