"""One object over time: the best path through the candidates of each frame, its numbers, and steadier boxes.

The path x_1 … x_T takes one candidate of each frame or none and maximises

    Σ_t score(x_t) − Σ_t change(x_t, x_{t+1}),

where the published box, the one that the threshold was chosen for, counts ``TRUST`` more than the others, a change of
boxes costs ``JUMP`` · (1 − IoU), to lose or to find the object costs half a jump, and across a cut nothing costs
anything. So going through "none" is never cheaper than the jump itself, while one bad frame is.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates
from colocam.compiled import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NONE = -1
"""Choice of a frame in which the object is not seen."""
JUMP = 1.3
"""Cost of a jump to a box without overlap, in units of the score."""
TRUST = 0.3
"""What the published box, the first candidate, counts more, in the same units."""


def iou(a: Floats, b: Floats) -> Floats:
    """IoU of boxes (..., 4) as areas, x2 − x1 wide; shapes are broadcast. 0 for boxes without area."""
    common = _area(np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:]))
    union = _area(a[..., :2], a[..., 2:]) + _area(b[..., :2], b[..., 2:]) - common
    overlap: Floats = common / np.where(union > 0, union, 1)
    return overlap


def iou_of_two(a: Sequence[float], b: Sequence[float]) -> float:
    """The same for two boxes: as arrays, so few numbers take twenty times as long."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height)


def margin(candidates: Candidates, box: Floats) -> float:
    """Best score of the candidates that a box (4,) means, IoU ≥ 0.5, less that of any other; 0 for no candidate."""
    own, other, meant = 0.0, 0.0, box.tolist()
    for one, score in zip(candidates.boxes.tolist(), candidates.scores.tolist(), strict=True):
        if iou_of_two(meant, one) >= 0.5:
            own = max(own, score)
        else:
            other = max(other, score)
    return own - other


@compiled
def _best_changes(before: Floats, totals: Floats, after: Floats, jump: float) -> tuple[Floats, Integers]:
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
    for j in range(last + 1):
        for i in range(nothing + 1):
            if i < nothing and j < last:
                width = min(before[i, 2], after[j, 2]) - max(before[i, 0], after[j, 0])
                height = min(before[i, 3], after[j, 3]) - max(before[i, 1], after[j, 1])
                common = max(width, 0.0) * max(height, 0.0)
                union = (before[i, 2] - before[i, 0]) * (before[i, 3] - before[i, 1]) - common
                union += (after[j, 2] - after[j, 0]) * (after[j, 3] - after[j, 1])
                cost = jump * (1 - (common / union if union > 0 else 0.0))
            else:
                cost = 0.0 if i == nothing and j == last else jump / 2
            if totals[i] - cost > worth[j]:
                worth[j], origins[j] = totals[i] - cost, i
    return worth, origins


class BestPath:
    """The best path as frames arrive, each decided ``lag`` frames later; no more than that is kept.

    With a lag of 0 a decision knows the past alone; with the lag of the whole video the path is the best of all.
    """

    def __init__(self, lag: int, jump: float = JUMP, trust: float = TRUST) -> None:
        self.lag = lag
        self.jump = jump
        self.trust = trust
        self._boxes = np.zeros((0, 4))
        self._totals = np.zeros(0)
        self._origins: deque[list[int]] = deque(maxlen=lag + 1)  # where the best path to each state came from
        self._pending = 0

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
        self._origins.append(origins.tolist())
        self._pending += 1
        if self._pending <= self.lag:
            return []
        self._pending -= 1
        return [self._back(self.lag)[0]]

    def finish(self) -> list[int]:
        """Give the choices for the frames that are still open, in order."""
        pending, self._pending = self._pending, 0
        return self._back(pending - 1) if pending else []

    def _back(self, steps: int) -> list[int]:
        """Follow the best path back from the last frame over ``steps`` frames."""
        state = int(self._totals.argmax())
        choices = []
        for place in range(1, steps + 2):
            origins = self._origins[-place]
            choices.append(NONE if state == len(origins) - 1 else state)
            state = origins[state]
        return choices[::-1]


def best_path(frames: list[Candidates], cuts: npt.NDArray[np.bool_] | None = None, jump: float = JUMP) -> list[int]:
    """Index of the candidate chosen in each frame, :data:`NONE` for none, over a whole video."""
    path = BestPath(len(frames), jump)
    for number, candidates in enumerate(frames):
        path.push(candidates, cut=bool(cuts is not None and cuts[number]))
    return path.finish()


def smooth_box(times: Floats, boxes: Floats, at: float, width: float) -> Floats:
    """Box (4,) at a time, from observed boxes around it: weighted straight lines through centre and log size.

    Weights are Gaussian in time. A straight line keeps up with steady motion, at the end of a track too, where the
    observations are all on one side; with the same number on both sides it is their weighted mean.

    Args:
        times: (n,) of the observations, n ≥ 1.
        boxes: (n, 4).
        at: the time asked for.
        width: standard deviation of the weights.
    """
    corners = boxes.reshape(-1, 2, 2)
    sizes = np.log(np.maximum(corners[:, 1] - corners[:, 0], 1))
    values = np.concatenate([corners.sum(1) / 2, sizes], axis=1)
    x = times - at
    weights = np.exp(x * x * (-0.5 / width**2))
    weights /= weights.sum()
    middle, level = weights @ x, weights @ values
    apart = x - middle
    pull = weights * apart
    spread = pull @ apart
    if spread > 1e-9:
        level -= pull @ values * (middle / spread)
    half = np.exp(level[2:]) / 2
    return np.concatenate([level[:2] - half, level[:2] + half])


def _area(low: Floats, high: Floats) -> Floats:
    """Of boxes from their corners (..., 2)."""
    sides = np.maximum(high - low, 0)
    area: Floats = sides[..., 0] * sides[..., 1]
    return area
