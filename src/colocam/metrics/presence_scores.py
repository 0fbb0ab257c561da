"""Presence of the object in a frame: average precision of a score, calibration error of a probability."""

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError


def average_precision(scores: npt.NDArray[np.floating], present: npt.NDArray[np.bool_]) -> float:
    """Σ precision · Δrecall from the highest score down, 0–1; equal scores count as one step.

    Args:
        scores: (N,) higher means present.
        present: (N,) the truth.
    """
    if scores.shape != present.shape or scores.ndim != 1:
        raise ColocamError(f"scores and present must be (N,), got {scores.shape} and {present.shape}")
    if not present.any():
        raise ColocamError("present has no True: average precision is not defined")
    order = np.argsort(-scores, kind="stable")
    true = np.cumsum(present[order])
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of each run of equal scores
    precision = true[last] / (last + 1)
    return float(np.sum(precision * np.diff(true[last], prepend=0)) / true[-1])


def calibration_error(probabilities: npt.NDArray[np.floating], present: npt.NDArray[np.bool_], bins: int = 10) -> float:
    """Σ n_b/N · |mean probability − share of present frames| over equal bins of 0–1 (ECE); 0 is perfect.

    Args:
        probabilities: (N,) of presence.
        present: (N,) the truth.
        bins: number of bins.
    """
    if probabilities.shape != present.shape or probabilities.ndim != 1 or not len(present):
        raise ColocamError(f"probabilities and present must be (N,), got {probabilities.shape} and {present.shape}")
    at = np.minimum((probabilities * bins).astype(int), bins - 1)
    surplus = np.bincount(at, probabilities - present, minlength=bins)
    return float(np.abs(surplus).sum() / len(present))
