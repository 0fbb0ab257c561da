"""Motion as a witness: heat on what moves otherwise than the camera counts more, where motion can be believed.

Flow f of a frame to its neighbour, less the motion H of the camera (a homography), leaves the residual r = |f − H|.
With h the frame's map,

    q = max(Σ h r / Σ h, ½ px),      w = ((ε + min(r / q, 1)) / (1 + ε))^½,      h ← h · w, scaled to its old maximum:

what moves at least as much as the heat on average keeps its heat. Maps are weighed where three medians over a window
say that motion is measured well and that the heat moves more than the rest (docs/method/motion.md).
"""

from collections import deque
from collections.abc import Callable, Sequence
from threading import local
from typing import NamedTuple, Protocol, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from colocam.temporal.cuts import WINDOW
from colocam.types import Float32Array, Levels

S = TypeVar("S")
T = TypeVar("T")
Grey = npt.NDArray[np.uint8]
"""(SIDE, SIDE)."""
Flow = npt.NDArray[np.float32]
"""(SIDE, SIDE, 2) x and y in pixels."""

SIDE = 224
"""Side of the grey frames: cars of 10 pixels need it."""
CELL = 4
"""Pixels between the points where the residual is computed: OpenCV's preset FAST interpolates flow between them."""
CAMERA_CELL = 16
"""Pixels between the points that the camera's motion is fitted to."""
NEAR, TRIALS = 1.0, 50
"""Pixels that such a point may be off; trials of RANSAC."""
EVERY = 4
"""Only every fourth frame of a shot is examined for whether motion can be believed."""
AGREEMENT, INLIERS, CONTRAST = 0.7, 0.5, 1.25
"""Least medians of a window, see :class:`Witness`."""
OWN_AGREEMENT = 0.5
"""Frames keep their maps where the agreement of the frame examined last is lower."""
LEAST_PAST = 3
"""Without look-ahead, frames that must have been examined since the cut."""
LEAST_MOTION = 0.5
"""Least q, in pixels: less is noise."""
FLOOR = 0.1
"""ε: what does not move at all keeps a share of its heat, √(ε / (1 + ε)) = 0.30."""

GRID: Float32Array = np.stack(np.meshgrid(*2 * [np.arange(SIDE, dtype=np.float32)]), -1)
"""(SIDE, SIDE, 2) x and y of each pixel."""


def _in_cells(values: Float32Array, cell: int) -> Float32Array:
    """The values (SIDE, SIDE, 2) at one point of each cell, (SIDE / cell, SIDE / cell, 2)."""
    return values[cell // 2 :: cell, cell // 2 :: cell]


POINTS = _in_cells(GRID, CELL)
"""(m, m, 2) x and y of the points where the residual is computed, m = SIDE / CELL."""
_own = local()


class Spread(Protocol):
    """Does work on each item, in threads."""

    def __call__(self, work: Callable[[S], T], items: Sequence[S], /) -> list[T]:
        """The results in order."""


class Moved(NamedTuple):
    """Flow of a frame to another, and what the camera does not explain of it.

    Attributes:
        flow: (m, m, 2) at :data:`POINTS`.
        residual: (m, m) r in pixels.
        inliers: share of the points within :data:`NEAR` of the camera's motion.
    """

    flow: Float32Array
    residual: Float32Array
    inliers: float


class Witness(NamedTuple):
    """How far the motion of one frame can be believed.

    Attributes:
        agreement: share of the points that the flow back returns to where they came from, within 1 px + 5 % of the way.
        inliers: see :class:`Moved`.
        contrast: mean residual weighted by the heat, relative to the mean residual of the frame.
    """

    agreement: float
    inliers: float
    contrast: float


def grey_frames(images: Levels) -> Levels:
    """Grey copies (B, SIDE, SIDE) of images (B, S, S, 3)."""
    how = cv2.INTER_AREA if images.shape[1] >= SIDE else cv2.INTER_LINEAR
    greys = np.empty((len(images), SIDE, SIDE), np.uint8)
    for image, grey in zip(images, greys, strict=True):
        cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (SIDE, SIDE), dst=grey, interpolation=how)
    return greys


def _flow(grey: Grey, other: Grey) -> Flow:
    """Flow from one frame to the other; OpenCV's object belongs to one thread."""
    if not hasattr(_own, "flow"):
        _own.flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        _own.flow.setGradientDescentIterations(12)  # as good as the preset's 16 and 5, in 3/4 of the time
        _own.flow.setVariationalRefinementIterations(2)
    flow: Flow = _own.flow.calc(grey, other, None)
    return flow


def residual_motion(grey: Grey, other: Grey) -> Moved:
    """What moves otherwise than the camera from one frame to another, in coordinates of the first."""
    whole = _flow(grey, other)
    flow = _in_cells(whole, CELL)
    came, went = (_in_cells(one, CAMERA_CELL).reshape(-1, 2) for one in (GRID, whole))
    camera, near = cv2.findHomography(came, came + went, cv2.RANSAC, NEAR, maxIters=TRIALS)
    if camera is None:
        return Moved(flow, _length(flow), 0.0)
    expected = cv2.perspectiveTransform(POINTS.reshape(1, -1, 2), camera).reshape(POINTS.shape)
    return Moved(flow, _length(POINTS + flow - expected), float(near.mean()))


def agreement(moved: Moved, grey: Grey, other: Grey) -> float:
    """Share of the points that the flow back returns to where they came from, within 1 px + 5 % of the way."""
    at = POINTS + moved.flow
    back = cv2.remap(_flow(other, grey), at[..., 0], at[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return float((_length(moved.flow + back) < 1 + 0.05 * _length(moved.flow)).mean())


def contrast(level: Levels, residual: Float32Array) -> float:
    """Mean residual weighted by a map (M, M), relative to the mean residual of the frame."""
    return _mean_motion(level, residual) / max(float(residual.mean()), 0.05)


def weigh(level: Levels, residual: Float32Array) -> Levels:
    """A map (M, M) in 8 bits, weighed by residual motion (m, m) in pixels; its maximum stays."""
    unit = max(_mean_motion(level, residual), LEAST_MOTION)
    weights = np.sqrt((FLOOR + np.minimum(residual / unit, 1)) / (1 + FLOOR))
    size = level.shape[::-1]
    smaller = size[0] < residual.shape[1]
    weighed = level * cv2.resize(weights, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR)
    scaled: Levels = np.rint(weighed * (level.max() / max(float(weighed.max()), 1e-6))).astype(np.uint8)
    return scaled


def believed(witnesses: Sequence[Witness]) -> bool:
    """Whether the medians say that motion is measured well and that the heat moves more than the rest."""
    middle = np.median(witnesses, axis=0)
    return bool((middle >= (AGREEMENT, INLIERS, CONTRAST)).all())


class WeighWindows:
    """Weighs the maps of one window after the other, by flow to the next frame; the last frame's to the one before.

    Each window decides for itself, from every fourth frame; where it decides against motion, the other frames cost
    nothing.
    """

    def __init__(self) -> None:
        self._before: Grey | None = None  # last frame of the window before, if it belongs to the shot

    def push(self, levels: Levels, greys: Levels, cuts: npt.NDArray[np.bool_], spread: Spread) -> Levels:
        """Weigh the maps (B, M, M) of one window with grey frames (B, SIDE, SIDE).

        Args:
            levels: the maps.
            greys: the frames.
            cuts: (B,) which frames begin a shot: none but the first of a window can.
            spread: does work on each of many items in threads.
        """
        before, self._before = None if cuts[0] else self._before, greys[-1]
        last = greys[-2] if len(greys) > 1 else before
        if last is None:
            return levels
        others = [*greys[1:], last]
        examined = range(0, len(greys), EVERY)
        found = spread(lambda at: _examine(levels[at], greys[at], others[at]), examined)
        if not believed([witness for _, witness in found]):
            return levels
        good = [at for at in range(len(greys)) if found[at // EVERY][1].agreement >= OWN_AGREEMENT]

        def weighed(at: int) -> Levels:
            moved = found[at // EVERY][0] if at % EVERY == 0 else residual_motion(greys[at], others[at])
            return weigh(levels[at], moved.residual)

        return _replaced(levels, good, spread(weighed, good))


class WeighByPast:
    """Weighs maps without look-ahead: flow to the frame before, believed by the last :data:`WINDOW` frames of the shot.

    The result does not depend on how the frames are divided into batches.
    """

    def __init__(self) -> None:
        self._before: Grey | None = None
        self._position = 0  # frames of the shot before the next one
        self._witnesses: deque[Witness] = deque(maxlen=WINDOW // EVERY)

    def push(self, levels: Levels, greys: Levels, cuts: npt.NDArray[np.bool_], spread: Spread) -> Levels:
        """Weigh the maps (B, M, M) of the next frames; as :meth:`WeighWindows.push`, with cuts anywhere."""
        before = [greys[0] if self._before is None else self._before, *greys[:-1]]  # of a shot's first frame: not used
        index = np.arange(len(greys))
        begun = np.maximum.accumulate(np.where(cuts, index, -self._position))
        positions = (index - begun).tolist()
        self._before, self._position = greys[-1], positions[-1] + 1

        examined = [at for at, position in enumerate(positions) if position % EVERY == 1]
        moves = spread(lambda at: _examine(levels[at], greys[at], before[at]), examined)
        found = dict(zip(examined, moves, strict=True))
        good = []
        for at, position in enumerate(positions):
            if position == 0:
                self._witnesses.clear()
                continue
            if at in found:
                self._witnesses.append(found[at][1])
            enough = len(self._witnesses) >= LEAST_PAST and self._witnesses[-1].agreement >= OWN_AGREEMENT
            if enough and believed(self._witnesses):
                good.append(at)

        def weighed(at: int) -> Levels:
            moved = found[at][0] if at in found else residual_motion(greys[at], before[at])
            return weigh(levels[at], moved.residual)

        return _replaced(levels, good, spread(weighed, good))


def _examine(level: Levels, grey: Grey, other: Grey) -> tuple[Moved, Witness]:
    """Motion from a frame with a map (M, M) to another, and how far it can be believed."""
    moved = residual_motion(grey, other)
    return moved, Witness(agreement(moved, grey, other), moved.inliers, contrast(level, moved.residual))


def _replaced(levels: Levels, places: list[int], weighed: list[Levels]) -> Levels:
    """The maps with others in their places."""
    if not places:
        return levels
    changed = levels.copy()
    changed[places] = weighed
    return changed


def _mean_motion(level: Levels, residual: Float32Array) -> float:
    """Σ h r / Σ h over a frame, with its map h (M, M) averaged over cells."""
    heat = cv2.resize(level, residual.shape[::-1], interpolation=cv2.INTER_AREA).astype(np.float32)
    return float((heat * residual).sum() / max(float(heat.sum()), 1e-6))


def _length(vectors: Float32Array) -> Float32Array:
    """(…) Euclidean length of vectors (…, 2), at most the side of the frames: a bad homography has poles."""
    length: Float32Array = np.fmin(np.hypot(vectors[..., 0], vectors[..., 1]), SIDE)
    return length
