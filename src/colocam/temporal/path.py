"""One object over time: the best path through the candidate boxes of all frames, and smoothing along a track.

The path x_1 … x_T takes one candidate of each frame, or none, and maximizes

    Σ_t score(x_t) − Σ_t cost(x_t, x_{t+1}).

The published box of a frame, for which the threshold was chosen, has ``TRUST`` added to its score. A change of boxes
costs ``JUMP`` · (1 − IoU); a change to or from "none" costs ``JUMP`` / 2; a change across a cut costs nothing. So a
jump through "none" is never cheaper than the jump itself, but skipping one bad frame is cheaper than two jumps.

Each frame is decided by the best path over the frames known at that time (Viterbi with a fixed lag). The next frame is
decided by another best path, which may disagree with earlier decisions. To keep two equally good paths from
alternating, each path also pays ``HOLD`` · (1 − IoU) for the change from the box that was returned last.
"""

from collections import deque
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates, eligible, find_chooser
from colocam.boxes.iou import iou
from colocam.types import Float64Array, Levels

Integers = npt.NDArray[np.int64]

NONE = -1
"""Choice of a frame without the object."""
JUMP = 1.3
"""Cost of a change to a box without overlap, in units of the score."""
TRUST = 0.3
"""Added to the score of the published box, which is the first candidate."""
HOLD = 0.7
"""Cost of a change away from the box returned last, if it does not overlap."""


def margin(candidates: Candidates, box: Float64Array) -> float:
    """Best score among the candidates with IoU ≥ 0.5 to ``box`` (4,), minus the best score among the others."""
    near = iou(box, candidates.boxes) >= 0.5
    near_scores, other = candidates.scores[near], candidates.scores[~near]
    return float(near_scores.max(initial=0.0) - other.max(initial=0.0))


def _changes(before: Float64Array, after: Float64Array, jump: float) -> Float64Array:
    """(..., n + 1) costs of changes from boxes (..., 4) to the boxes (n, 4) of another frame and, last, to "none"."""
    costs = np.full((*before.shape[:-1], len(after) + 1), jump / 2)
    costs[..., :-1] = jump * (1 - iou(before[..., None, :], after))
    return costs


def _best_changes(before: Float64Array, totals: Float64Array, after: Float64Array) -> tuple[Float64Array, Integers]:
    """The best predecessor of each box of a frame and, last, of "none".

    Args:
        before: (k, 4) boxes of the frame before.
        totals: (k + 1,) values of the best paths to these boxes and to "none".
        after: (n, 4) boxes of the frame.

    Returns:
        (n + 1,) values of the best paths without the new scores, and (n + 1,) indices of the predecessors.
    """
    costs = np.full((len(before) + 1, len(after) + 1), JUMP / 2)
    costs[:-1] = _changes(before, after, JUMP)
    costs[-1, -1] = 0.0
    worth = totals[:, None] - costs
    return worth.max(0), worth.argmax(0)


class _Open(NamedTuple):
    """A frame that is not decided yet: its boxes, the predecessor of each state, and whether a shot begins."""

    boxes: Float64Array
    origins: Integers
    cut: bool


class BestPath:
    """The best path as frames arrive; each frame is decided ``lag`` frames later, and only those frames are kept.

    With a lag of 0 only past frames are used; with the length of the video the path is optimal over the whole video.
    """

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self._boxes = np.zeros((0, 4))
        self._totals = np.zeros(0)
        self._open: deque[_Open] = deque()
        self._given: Float64Array | None = None  # the box returned last, since the last cut

    def push(self, candidates: Candidates, *, cut: bool = False) -> list[int]:
        """Add the next frame; return the choice for the frame ``lag`` before it, if there is one."""
        boxes = np.ascontiguousarray(candidates.boxes, np.float64)
        scores = np.zeros(len(candidates.scores) + 1)
        scores[:-1] = candidates.scores
        if len(boxes):
            scores[0] += TRUST
        if len(self._totals) == 0:
            self._totals, origins = scores, np.zeros(len(scores), np.int64)
        else:
            if cut:
                best = int(self._totals.argmax())
                worth, origins = self._totals[best], np.full(len(scores), best)
            else:
                worth, origins = _best_changes(self._boxes, self._totals, boxes)
            self._totals = worth + scores
            self._totals -= self._totals.max()  # only differences matter, and a long video would lose digits
        self._boxes = boxes
        self._open.append(_Open(boxes, origins, cut))
        if len(self._open) <= self.lag:
            return []
        best, ways = self._best()
        return [self._give(int(ways[-1][best]))]

    def finish(self) -> list[int]:
        """Return the choices for the frames that are not decided yet, in order."""
        if not self._open:
            return []
        best, ways = self._best()
        return [self._give(int(way[best])) for way in reversed(ways)]

    def _best(self) -> tuple[int, list[Integers]]:
        """The last state of the best path, and, backwards in time, the states of the best paths to all last states."""
        ways = [np.arange(len(self._totals))]
        for frame in islice(reversed(self._open), len(self._open) - 1):
            ways.append(frame.origins[ways[-1]])
        first, totals = self._open[0], self._totals
        if self._given is not None and not first.cut:
            totals = totals - _changes(self._given, first.boxes, HOLD)[ways[-1]]
        return int(totals.argmax()), ways

    def _give(self, state: int) -> int:
        """Decide the first open frame; return the choice."""
        boxes, _, cut = self._open.popleft()
        seen = state < len(boxes)
        if seen or cut:
            self._given = boxes[state] if seen else None
        return state if seen else NONE


def smooth_box(
    times: Float64Array,
    boxes: Float64Array,
    at: float,
    width: float,
    damping: float = 0.0,
    counts: Float64Array | None = None,
) -> Float64Array:
    """Box (4,) at one time by weighted linear regression of center and log size on time.

    Weights are Gaussian in time. A line follows steady motion, also at the end of a track, where all observations are
    on one side; there it also extrapolates noise. ``damping`` reduces the slope, as ridge regression does; with an
    infinite value the result is the weighted mean.

    Args:
        times: (n,) times of the observations, n ≥ 1.
        boxes: (n, 4).
        at: the time of the result.
        width: standard deviation of the weights.
        damping: added to the variance of the times, in frames²; 0 for plain least squares.
        counts: (n,) further weights, 0 or more and not all 0; None for equal weights.
    """
    apart = times - at
    weights = np.exp(-0.5 * (apart / width) ** 2) * (1.0 if counts is None else counts)
    weights /= weights.sum()
    middle = weights @ apart
    apart -= middle
    spread = damping + weights @ apart**2
    corners, opposite = boxes[:, :2], boxes[:, 2:]
    values = np.hstack([(corners + opposite) / 2, np.log(np.maximum(opposite - corners, 1.0))])
    level = weights @ values
    if spread > 1e-9:
        level -= (weights * apart) @ values * (middle / spread)
    half = np.exp(level[2:]) / 2
    return np.concatenate([level[:2] - half, level[:2] + half])


def boxes_of_shots(
    maps: Levels, threshold: float, chooser: str, clips: npt.NDArray[np.int64]
) -> tuple[Float64Array, npt.NDArray[np.bool_]]:
    """The box of each frame by a chooser and, if it works by the shot, by the best path through each clip.

    Args:
        maps: (N, h, w) in 8 bits, in order.
        threshold: τ in 0–1.
        chooser: name in ``CHOOSERS``.
        clips: (N,) clip of each frame; frames of one clip are neighbors.

    Returns:
        boxes (N, 4) in map pixels, and (N,) whether there is one.
    """
    rule = find_chooser(chooser)
    candidates = rule.candidates(maps, threshold)
    boxes, has_box = np.zeros((len(maps), 4)), np.zeros(len(maps), bool)
    for _, group in groupby(range(len(maps)), key=lambda frame: int(clips[frame])):
        frames = list(group)
        if rule.by_shot:
            path = BestPath(len(frames))
            choices = [choice for frame in frames for choice in path.push(eligible(candidates[frame]))]
            choices += path.finish()
        else:
            choices = [0 if len(candidates[frame].boxes) else NONE for frame in frames]
        for frame, choice in zip(frames, choices, strict=True):
            if choice != NONE:
                boxes[frame], has_box[frame] = candidates[frame].boxes[choice], True
    return boxes, has_box
