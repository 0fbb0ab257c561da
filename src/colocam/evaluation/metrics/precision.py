"""Average precision: of presence in frames, of pixels where masks exist (PxAP); calibration of a probability."""

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

BINS = 1000
"""Scores are binned in steps of .001; a score of 1 has a bin of its own."""


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
    values, at = np.unique(scores, return_inverse=True)
    return pxap(np.stack([np.bincount(at[present == one], minlength=len(values)) for one in (False, True)])) / 100


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


def pixel_histograms(
    maps: npt.NDArray[np.floating], masks: npt.NDArray[np.integer] | npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count background and foreground pixels by score.

    Args:
        maps: (B, H, W) in 0–1.
        masks: (B, H, W) 0 background, 1 foreground, anything else is ignored.

    Returns:
        (2, BINS + 1), which can be added up over batches.
    """
    if maps.shape != masks.shape:
        raise ColocamError(f"maps and masks must have the same shape, got {maps.shape} and {masks.shape}")
    if maps.size and not (maps.min() >= 0 and maps.max() <= 1):
        raise ColocamError("maps must be in 0–1: normalise them first")
    bins = np.floor(maps.astype(np.float64) * BINS).astype(np.int64)
    return np.stack([np.bincount(bins[masks == value], minlength=BINS + 1) for value in (0, 1)])


def pxap(histograms: npt.NDArray[np.int64]) -> float:
    """Σ precision · Δrecall over thresholds from the highest score down, in percent.

    Args:
        histograms: (2, n) background and foreground pixels by score, ascending.
    """
    false, true = np.cumsum(histograms[:, ::-1], axis=1)
    if not true[-1]:
        raise ColocamError("masks have no foreground pixel: PxAP is not defined")
    precision = true / np.maximum(true + false, 1)
    return 100 * float(np.sum(precision * np.diff(true, prepend=0)) / true[-1])
