"""Motion as a witness: heat on what moves relative to the camera counts more, where motion can be believed.

Flow f of a frame to its neighbor, less the motion H of the camera (a homography), leaves the residual r = |f − H|.
With h the frame's map,

    q = max(Σ h r / Σ h, ⅛ px),      w = ((ε + min(r / q, 1)) / (1 + ε))^½,      h ← h · w, scaled to its old maximum:

what moves at least as much as the heat on average keeps its heat. Flow is computed for every fourth frame; its
neighbors have the same residual, moved along the flow. Maps are weighed where two medians over a window say that
motion is measured well and that the heat moves more than the rest (docs/method/motion.md). Pixels are those of gray
copies of SIDE × SIDE.
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
Gray = npt.NDArray[np.uint8]
"""(SIDE, SIDE)."""

SIDE = 56
"""Side of the gray copies of frames."""
CELL = 4
"""Pixels between the points that the camera's motion is fitted to."""
NEAR, TRIALS = 0.25, 50
"""Pixels that such a point may be off; trials of RANSAC."""
EVERY = 4
"""Flow is computed for one of four frames."""
INLIERS, CONTRAST = 0.5, 1.25
"""Least medians of a window, see :class:`Moved` and :func:`contrast`."""
OWN_INLIERS = 0.4
"""Frames keep their maps where the share of inliers of their own flow is lower."""
LEAST_PAST = 3
"""Without look-ahead, flows that must have been computed since the cut."""
LEAST_MOTION = 0.125
"""Least q, in pixels: less is noise."""
FLOOR = 0.1
"""ε: what does not move at all keeps a share of its heat, √(ε / (1 + ε)) = 0.30."""

POINTS: Float32Array = np.stack(np.meshgrid(*2 * [np.arange(SIDE, dtype=np.float32)]), -1)
"""(SIDE, SIDE, 2) x and y of each pixel."""
_own = local()


class Spread(Protocol):
    """Does work on each item, in threads."""

    def __call__(self, work: Callable[[S], T], items: Sequence[S], /) -> list[T]:
        """The results in order."""


class Moved(NamedTuple):
    """Flow of a frame to the next one or the one before, and what the camera does not explain of it.

    Attributes:
        flow: (SIDE, SIDE, 2) x and y in pixels.
        residual: (SIDE, SIDE) r in pixels.
        inliers: share of the points within :data:`NEAR` of the camera's motion.
    """

    flow: Float32Array
    residual: Float32Array
    inliers: float

    def after(self, steps: int) -> Float32Array:
        """The residual (SIDE, SIDE) ``steps`` frames further along the flow, if all goes on moving as it does."""
        if not steps:
            return self.residual
        x, y = cv2.split(POINTS - np.float32(steps) * self.flow)
        moved = cv2.remap(self.residual, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return moved.astype(np.float32, copy=False)


def gray_frames(images: Levels) -> Levels:
    """Gray copies (B, SIDE, SIDE) of images (B, S, S, 3)."""
    grays = np.empty((len(images), SIDE, SIDE), np.uint8)
    for image, gray in zip(images, grays, strict=True):
        small = image
        while len(small) >= 2 * SIDE:  # OpenCV halves ten times as fast as it shrinks by other factors
            small = cv2.resize(small, (len(small) // 2, len(small) // 2), interpolation=cv2.INTER_AREA)
        cv2.cvtColor(cv2.resize(small, (SIDE, SIDE)), cv2.COLOR_RGB2GRAY, gray)
    return grays


def _flow(gray: Gray, other: Gray) -> Float32Array:
    """Flow (SIDE, SIDE, 2) from one frame to the other; OpenCV's object belongs to one thread."""
    if not hasattr(_own, "flow"):
        _own.flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        _own.flow.setFinestScale(0)  # the preset would shrink frames of 224² to 56² first
        _own.flow.setGradientDescentIterations(12)  # as good as the preset's 16 and 5, in 3/4 of the time
        _own.flow.setVariationalRefinementIterations(2)
    flow: Float32Array = _own.flow.calc(gray, other, None)
    return flow


def residual_motion(gray: Gray, other: Gray) -> Moved:
    """What moves relative to the camera from one frame to another, in coordinates of the first."""
    flow = _flow(gray, other)
    came, went = (field[CELL // 2 :: CELL, CELL // 2 :: CELL].reshape(-1, 2) for field in (POINTS, flow))
    camera, near = cv2.findHomography(came, came + went, cv2.USAC_FAST, NEAR, maxIters=TRIALS)
    if camera is None:
        return Moved(flow, _length(flow), 0.0)
    expected = cv2.perspectiveTransform(POINTS.reshape(1, -1, 2), camera).reshape(POINTS.shape)
    return Moved(flow, _length(POINTS + flow - expected), float(near.mean()))


def contrast(level: Levels, residual: Float32Array) -> float:
    """Mean residual weighted by a map (M, M), relative to the mean residual of the frame."""
    return _mean_motion(level, residual) / max(float(residual.mean()), LEAST_MOTION / 10)


def weigh(level: Levels, residual: Float32Array) -> Levels:
    """A map (M, M) in 8 bits, weighed by residual motion (SIDE, SIDE) in pixels; its maximum stays."""
    unit = max(_mean_motion(level, residual), LEAST_MOTION)
    weights = np.sqrt((FLOOR + np.minimum(residual / unit, 1)) / (1 + FLOOR))
    size = level.shape[::-1]
    how = cv2.INTER_AREA if size[0] < SIDE else cv2.INTER_LINEAR
    # In 8 bits this takes half of the time of floats.
    fine = cv2.resize(cv2.convertScaleAbs(weights, alpha=255), size, interpolation=how)
    weighed = np.multiply(level, fine, dtype=np.uint16)
    scaled: Levels = cv2.convertScaleAbs(weighed, alpha=level.max() / max(int(weighed.max()), 1))
    return scaled


def believed(witnesses: Sequence[tuple[float, float]]) -> bool:
    """Whether the medians of inliers and contrast say that motion is measured well and that the heat moves more."""
    return bool((np.median(witnesses, axis=0) >= (INLIERS, CONTRAST)).all())


class WeighWindows:
    """Weighs the maps of one window after the other, by flow to the next frame; the last frame's to the one before.

    Each window decides for itself.
    """

    def __init__(self) -> None:
        self._before: Gray | None = None  # last frame of the window before, if it belongs to the shot

    def push(self, levels: Levels, grays: Levels, cuts: npt.NDArray[np.bool_], spread: Spread) -> Levels:
        """Weigh the maps (B, M, M) of one window with gray frames (B, SIDE, SIDE).

        Args:
            levels: the maps.
            grays: the frames.
            cuts: (B,) which frames begin a shot: none but the first of a window can.
            spread: does work on each of many items in threads.
        """
        before, self._before = None if cuts[0] else self._before, grays[-1]
        last = len(grays) - 1
        previous = grays[-2] if last else before
        if previous is None:
            return levels
        others = [*grays[1:], previous]
        examined = [min(start + 1, last) for start in range(0, len(grays), EVERY)]
        moves = spread(lambda at: residual_motion(grays[at], others[at]), examined)
        measured = list(zip(examined, moves, strict=True))
        if not believed([(moved.inliers, contrast(levels[at], moved.residual)) for at, moved in measured]):
            return levels

        def weighed(at: int) -> Levels:
            where, moved = measured[at // EVERY]
            return weigh(levels[at], moved.after(at - where if where < last else where - at))

        good = [at for at in range(len(grays)) if measured[at // EVERY][1].inliers >= OWN_INLIERS]
        return _replaced(levels, good, spread(weighed, good))


class WeighByPast:
    """Weighs maps without look-ahead: flow to the frame before, believed by the last :data:`WINDOW` frames of the shot.

    The result does not depend on how the frames are divided into batches.
    """

    def __init__(self) -> None:
        self._before: Gray | None = None
        self._position = 0  # frames of the shot before the next one
        self._witnesses: deque[tuple[float, float]] = deque(maxlen=WINDOW // EVERY)

    def push(self, levels: Levels, grays: Levels, cuts: npt.NDArray[np.bool_], spread: Spread) -> Levels:
        """Weigh the maps (B, M, M) of the next frames; as :meth:`WeighWindows.push`, with cuts anywhere."""
        before = [grays[0] if self._before is None else self._before, *grays[:-1]]  # of a shot's first frame: not used
        index = np.arange(len(grays))
        begun = np.maximum.accumulate(np.where(cuts, index, -self._position))
        positions = (index - begun).tolist()
        self._before, self._position = grays[-1], positions[-1] + 1

        examined = [at for at, position in enumerate(positions) if position % EVERY == 1]
        moves = spread(lambda at: residual_motion(grays[at], before[at]), examined)
        move_at = dict(zip(examined, moves, strict=True))
        good = []
        for at, position in enumerate(positions):
            if position == 0:
                self._witnesses.clear()
                continue
            if at in move_at:
                self._witnesses.append((move_at[at].inliers, contrast(levels[at], move_at[at].residual)))
            enough = len(self._witnesses) >= LEAST_PAST and self._witnesses[-1][0] >= OWN_INLIERS
            if enough and believed(self._witnesses):
                good.append(at)

        def weighed(at: int) -> Levels:
            moved = move_at[at] if at in move_at else residual_motion(grays[at], before[at])
            return weigh(levels[at], moved.residual)

        return _replaced(levels, good, spread(weighed, good))


def _replaced(levels: Levels, places: list[int], weighed: list[Levels]) -> Levels:
    """The maps with others in their places."""
    if not places:
        return levels
    changed = levels.copy()
    changed[places] = weighed
    return changed


def _mean_motion(level: Levels, residual: Float32Array) -> float:
    """Σ h r / Σ h over a frame, with its map h (M, M) averaged over the pixels of the gray copy."""
    heat = cv2.resize(level, residual.shape[::-1], interpolation=cv2.INTER_AREA).astype(np.float32)
    return float((heat * residual).sum() / max(float(heat.sum()), 1e-6))


def _length(vectors: Float32Array) -> Float32Array:
    """(…) Euclidean length of vectors (…, 2), at most the side of the frames: a bad homography has poles."""
    length: Float32Array = np.fmin(np.hypot(vectors[..., 0], vectors[..., 1]), SIDE)
    return length
