"""Is the object in the picture at all? Average precision of a score for presence, and how true a probability is."""

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
        raise ColocamError(f"scores of shape {scores.shape} but presences of shape {present.shape}")
    if not present.any():
        raise ColocamError("the object is present in no frame: average precision is not defined")
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
        bins: how many.
    """
    if probabilities.shape != present.shape or probabilities.ndim != 1 or not len(present):
        raise ColocamError(f"probabilities of shape {probabilities.shape} but presences of shape {present.shape}")
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    surplus = np.bincount(place, probabilities - present, minlength=bins)
    return float(np.abs(surplus).sum() / len(present))
