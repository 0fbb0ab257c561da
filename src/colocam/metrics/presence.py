"""Is the object in the picture at all? Average precision of a score for presence."""

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
