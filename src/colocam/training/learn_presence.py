"""Calibrate presence from frames that people said to show the object, or not."""

import numpy as np
import numpy.typing as npt

from colocam.temporal.presence import LIMIT, Calibration, calibrate
from colocam.types import Float64Array

PRIOR = 0.2
"""Precision of the scale and the shift of the evidence around 1 and 0, in units of one frame's information."""


def calibrate_presence(
    calibration: Calibration | None,
    peaks: Float64Array,
    present: npt.NDArray[np.bool_],
    weights: Float64Array,
) -> Calibration | None:
    """Scale and shift the evidence so far, x = slope · peak + offset, to α x + β.

    α and β minimise Σ ω_i CE(α x_i + β, present_i) + PRIOR · ((α − 1)² + β²) / 2, where frames with and without the
    object have the same sum of weights. Without frames of both kinds the calibration stays as it is.

    Args:
        calibration: so far; None: there is none.
        peaks: (N,) peak of the CAM of each frame's class.
        present: (N,) whether the frame shows the object.
        weights: (N,) of the frames.
    """
    if not len(peaks) or present.all() or not present.any():
        return calibration
    if calibration is None or calibration.slope <= 0:
        return calibrate(peaks[present], peaks[~present])
    x = (calibration.slope * peaks + calibration.offset).clip(-LIMIT, LIMIT)
    share = np.where(present, weights / weights[present].sum(), weights / weights[~present].sum())
    share *= min(weights[present].sum(), weights[~present].sum())
    design, start = np.stack([x, np.ones(len(x))], axis=1), np.array([1.0, 0.0])
    values = start.copy()
    for _ in range(100):
        p = 1 / (1 + np.exp(-(design @ values)))
        gradient = design.T @ (share * (p - present)) + PRIOR * (values - start)
        curvature = (design * (share * p * (1 - p))[:, None]).T @ design + PRIOR * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step /= max(1.0, float(np.abs(step).max()))
        values -= step
        if np.abs(step).max() < 1e-10:
            break
    scale, shift = max(float(values[0]), 0.0), float(values[1])
    return Calibration(scale * calibration.slope, scale * calibration.offset + shift)


def presence_loss(calibration: Calibration | None, peaks: Float64Array, present: npt.NDArray[np.bool_]) -> float:
    """Mean cross-entropy of presence, with and without the object with the same weight; NaN without frames of both."""
    if calibration is None or not present.any() or present.all():
        return float("nan")
    evidence = calibration.evidence(peaks)
    losses = np.logaddexp(0, np.where(present, -evidence, evidence))
    return float((losses[present].mean() + losses[~present].mean()) / 2)
