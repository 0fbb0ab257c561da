"""One object over time: the best path through the candidates of each frame, its numbers, and steadier boxes.

The path x_1 … x_T takes one candidate of each frame or none and maximises

    Σ_t score(x_t) − Σ_t change(x_t, x_{t+1}),

where the published box, the one that the threshold was chosen for, counts ``TRUST`` more than the others, a change of
boxes costs ``JUMP`` · (1 − IoU), to lose or to find the object costs half a jump, and across a cut nothing costs
anything. So going through "none" is never cheaper than the jump itself, while one bad frame is.

A frame is decided by the best path of what is known then, and the next frame by another, which may have come a
different way. So that two paths of about the same worth do not take turns, each of the paths that a decision is
between, the best ones to the states of the last frame, also pays ``HOLD`` · (1 − IoU) for the way from the box given
last.
"""

from collections import deque
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates
from colocam.boxes.iou import pair_iou
from colocam.types import Float64Array
from colocam.utils.jit import compiled

Integers = npt.NDArray[np.int64]

NONE = -1
"""Choice of a frame in which the object is not seen."""
JUMP = 1.3
"""Cost of a jump to a box without overlap, in units of the score."""
TRUST = 0.3
"""What the published box, the first candidate, counts more, in the same units."""
HOLD = 0.7
"""Cost of a jump away from the box given last, which the path itself may not have come from."""


def margin(candidates: Candidates, box: Float64Array) -> float:
    """Best score of the candidates that a box (4,) means, IoU ≥ 0.5, less that of any other; 0 for no candidate."""
    return _margin(candidates.boxes, candidates.scores, box)


@compiled
def _margin(boxes: Float64Array, scores: Float64Array, box: Float64Array) -> float:
    overlaps = 1 - _changes(box, boxes, 1.0)
    own, other = 0.0, 0.0
    for i in range(len(boxes)):
        if overlaps[i] >= 0.5:
            own = max(own, scores[i])
        else:
            other = max(other, scores[i])
    return own - other


@compiled
def _changes(before: Float64Array, after: Float64Array, jump: float) -> Float64Array:
    """(n + 1,) what changes cost from a box (4,) to each box (n, 4) of another frame and, last, to "none"."""
    costs = np.full(len(after) + 1, jump / 2)
    for j in range(len(after)):
        costs[j] = jump * (1 - pair_iou(before, after[j], 0.0))
    return costs


@compiled
def _best_changes(
    before: Float64Array, totals: Float64Array, after: Float64Array, jump: float
) -> tuple[Float64Array, Integers]:
    """The best way to each box (n, 4) of a frame and, last, to "none", from those of the frame before it.

    Args:
        before: (k, 4).
        totals: (k + 1,) what the best paths to them, and to "none", are worth.
        after: (n, 4).
        jump: cost of a jump.

    Returns:
        (n + 1,) what the paths are worth so, without the new scores, and (n + 1,) where they come from.
    """
    nothing, last = len(before), len(after)
    worth, origins = np.full(last + 1, -np.inf), np.zeros(last + 1, np.int64)
    for i in range(nothing + 1):
        if i < nothing:
            costs = _changes(before[i], after, jump)
        else:
            costs = np.full(last + 1, jump / 2)
            costs[last] = 0.0
        for j in range(last + 1):
            if totals[i] - costs[j] > worth[j]:
                worth[j], origins[j] = totals[i] - costs[j], i
    return worth, origins


class _Open(NamedTuple):
    """A frame that is not decided: its boxes, where the best path to each state came from, whether a shot begins."""

    boxes: Float64Array
    origins: Integers
    cut: bool


class BestPath:
    """The best path as frames arrive, each decided ``lag`` frames later; no more than that is kept.

    With a lag of 0 a decision knows the past alone; with the lag of the whole video the path is the best of all.
    """

    def __init__(self, lag: int, jump: float = JUMP, trust: float = TRUST, hold: float = HOLD) -> None:
        self.lag = lag
        self.jump = jump
        self.trust = trust
        self.hold = hold
        self._boxes = np.zeros((0, 4))
        self._totals = np.zeros(0)
        self._open: deque[_Open] = deque()
        self._given: Float64Array | None = None  # the box given last, since the last cut

    def push(self, candidates: Candidates, *, cut: bool = False) -> list[int]:
        """Take the next frame; give the choice for the frame ``lag`` before it, if there is one."""
        boxes = np.ascontiguousarray(candidates.boxes, np.float64)
        scores = np.zeros(len(candidates.scores) + 1)
        scores[:-1] = candidates.scores
        if len(boxes):
            scores[0] += self.trust
        if len(self._totals) == 0:
            self._totals, origins = scores, np.zeros(len(scores), np.int64)
        else:
            if cut:
                best = int(self._totals.argmax())
                worth, origins = self._totals[best], np.full(len(scores), best)
            else:
                worth, origins = _best_changes(self._boxes, self._totals, boxes, self.jump)
            self._totals = worth + scores
            self._totals -= self._totals.max()  # only differences matter, and a long video would lose digits
        self._boxes = boxes
        self._open.append(_Open(boxes, origins, cut))
        if len(self._open) <= self.lag:
            return []
        best, ways = self._best()
        return [self._give(int(ways[-1][best]))]

    def finish(self) -> list[int]:
        """Give the choices for the frames that are still open, in order."""
        if not self._open:
            return []
        best, ways = self._best()
        return [self._give(int(way[best])) for way in reversed(ways)]

    def _best(self) -> tuple[int, list[Integers]]:
        """The last state of the path to take, and, back in time, the states on the best paths to each last state."""
        ways = [np.arange(len(self._totals))]
        for frame in islice(reversed(self._open), len(self._open) - 1):
            ways.append(frame.origins[ways[-1]])
        first, totals = self._open[0], self._totals
        if self._given is not None and not first.cut:
            totals = totals - _changes(self._given, first.boxes, self.hold)[ways[-1]]
        return int(totals.argmax()), ways

    def _give(self, state: int) -> int:
        """Close the first open frame with a state; return the choice."""
        boxes, _, cut = self._open.popleft()
        seen = state < len(boxes)
        if seen or cut:
            self._given = boxes[state] if seen else None
        return state if seen else NONE


def best_path(frames: list[Candidates], cuts: npt.NDArray[np.bool_] | None = None, jump: float = JUMP) -> list[int]:
    """Index of the candidate chosen in each frame, :data:`NONE` for none, over a whole video."""
    path = BestPath(len(frames), jump)
    for number, candidates in enumerate(frames):
        path.push(candidates, cut=bool(cuts is not None and cuts[number]))
    return path.finish()


def smooth_box(
    times: Float64Array,
    boxes: Float64Array,
    at: float,
    width: float,
    damping: float = 0.0,
    counts: Float64Array | None = None,
) -> Float64Array:
    """Box (4,) at a time, from observed boxes around it: weighted straight lines through centre and log size.

    Weights are Gaussian in time. A straight line keeps up with steady motion, at the end of a track too, where the
    observations are all on one side; with the same number on both sides it is their weighted mean. But there it carries
    on every tremble, too, which ``damping`` forgoes for some of the motion: the slope is that of ridge regression, up
    to the weighted mean.

    Args:
        times: (n,) of the observations, n ≥ 1.
        boxes: (n, 4).
        at: the time asked for.
        width: standard deviation of the weights.
        damping: what is added to the variance of the times, in frames²; 0 for plain least squares, infinite for means.
        counts: (n,) what each observation counts besides, 0 or more and not all 0; None for the same.
    """
    return _line(times, boxes, float(at), width, damping, np.ones(len(times)) if counts is None else counts)


@compiled
def _line(
    times: Float64Array, boxes: Float64Array, at: float, width: float, damping: float, counts: Float64Array
) -> Float64Array:
    """See :func:`smooth_box`; compiled, since so few numbers take arrays ten times as long."""
    weights = counts * np.exp((times - at) ** 2 * (-0.5 / width**2))
    weights /= weights.sum()
    middle = (weights * (times - at)).sum()
    spread, level, pull = damping, np.zeros(4), np.zeros(4)
    for i in range(len(times)):
        apart = times[i] - at - middle
        spread += weights[i] * apart * apart
        for axis in range(2):
            low, high = boxes[i, axis], boxes[i, axis + 2]
            for place, value in ((axis, (low + high) / 2), (axis + 2, np.log(max(high - low, 1.0)))):
                level[place] += weights[i] * value
                pull[place] += weights[i] * apart * value
    if spread > 1e-9:
        level -= pull * (middle / spread)
    half = np.exp(level[2:]) / 2
    return np.concatenate((level[:2] - half, level[:2] + half))
