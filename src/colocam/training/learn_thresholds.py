"""Choose τ from corrected boxes, for all classes and for each, with as much trust as there are boxes."""

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import find_chooser
from colocam.boxes.extract import boxes_at_levels
from colocam.data.samples import Boxes
from colocam.metrics import best_overlaps
from colocam.metrics.chooser_threshold import GRID as CHOOSER_GRID
from colocam.metrics.hits import hits_of_overlaps
from colocam.types import Float64Array, Levels

GRID: Float64Array = np.arange(1, 200) / 200
LEAST = (0.3, 0.5, 0.7)
"""IoUs from which a box is right; the mean over several is smoother than one."""
PRIOR = 10.0
"""Boxes that the threshold of the model so far counts as."""
WIDTH = 0.15
"""Standard deviation of a threshold around the one so far."""
SHRINKAGE = 20.0
"""Boxes that the curve of all classes counts as in the curve of one class."""


def right_at(levels: Levels, boxes: list[Boxes], chooser: str = "largest") -> Float64Array:
    """(N, T) how right the box of each map is at each τ of :data:`GRID`, 0–1; every frame has a true box.

    A chooser that compares thresholds itself is asked at few τ; between them, the result is interpolated.
    """
    if not len(levels):
        return np.zeros((0, len(GRID)))
    if find_chooser(chooser).by_shot:
        few = np.stack([_right_boxes(levels, boxes, chooser, float(threshold)) for threshold in CHOOSER_GRID], axis=1)
        return np.stack([np.interp(GRID, CHOOSER_GRID, row) for row in few])
    overlaps = best_overlaps(boxes_at_levels(levels), boxes)
    hits = hits_of_overlaps(overlaps, levels.max((1, 2)), GRID, LEAST)
    mean: Float64Array = hits.mean(axis=0)
    return mean


def _right_boxes(levels: Levels, boxes: list[Boxes], chooser: str, threshold: float) -> Float64Array:
    """(N,) how right the first candidate of each map is at τ, 0–1."""
    candidates = find_chooser(chooser).candidates(levels, threshold)
    found = np.array([len(one.boxes) > 0 for one in candidates])
    first = np.array([one.boxes[0] if len(one.boxes) else np.zeros(4) for one in candidates], np.float64)
    overlaps = np.where(found, best_overlaps(first[:, None], boxes)[:, 0], 0.0)
    right: Float64Array = np.mean([overlaps >= least for least in LEAST], axis=0)
    return right


def choose_thresholds(
    right: Float64Array, classes: npt.NDArray[np.int64], weights: Float64Array, count: int, start: float
) -> tuple[float, tuple[float, ...]]:
    """τ for all classes, and τ of each class.

    With c(τ) the weighted mean of ``right`` and n the sum of weights, τ maximises (n c(τ) + PRIOR · p(τ)) / (n + PRIOR)
    with p(τ) = exp(−(τ − start)² / 2 WIDTH²). For one class, its c(τ) is shrunk to that of all classes in the same way.

    Args:
        right: (N, T) of :func:`right_at`.
        classes: (N,) index of each frame's class.
        weights: (N,) of the frames.
        count: K, number of classes.
        start: τ so far.

    Returns:
        τ for all, and (K,) τ of each class.
    """
    prior = np.exp(-((GRID - start) ** 2) / (2 * WIDTH**2))
    sums = np.zeros((count, len(GRID)))
    np.add.at(sums, classes, weights[:, None] * right)
    mass = np.bincount(classes, weights, minlength=count)
    curves = np.divide(sums, mass[:, None], out=np.zeros_like(sums), where=mass[:, None] > 0)
    total = float(mass.sum())
    everyone = curves[mass > 0].mean(axis=0) if total else prior
    shrunk = (total * everyone + PRIOR * prior) / (total + PRIOR)
    each = (mass[:, None] * curves + SHRINKAGE * shrunk) / (mass[:, None] + SHRINKAGE)
    return _best(shrunk), tuple(_best(curve) for curve in each)


def _best(curve: Float64Array) -> float:
    """τ of the highest value; of several the middle one, which is safest on other frames."""
    best = np.flatnonzero(curve >= curve.max() - 1e-12)
    return float(GRID[best[(len(best) - 1) // 2]])
