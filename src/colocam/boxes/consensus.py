"""Candidate boxes by consensus: of the boxes that a map has at many thresholds, the one that most others agree with.

One threshold for all maps is too low where the map fades slowly and too high where it is weak. Let R_k be the box of
the largest contour at τ_k = f_k τ. Each box has the score

    s_j = Σ_k w_k IoU(R_j, R_k) / Σ_k w_k,      w_k = exp(−½ (ln f_k / SPREAD)²),

so that a box counts which changes little over a range of thresholds around τ (docs/method/choosers.md).
"""

import numpy as np

from colocam.boxes.candidates import Candidates
from colocam.boxes.extract import check_threshold, largest_boxes
from colocam.boxes.iou import iou
from colocam.boxes.quantize import Maps, checked_levels
from colocam.types import Float64Array

FACTORS: Float64Array = np.geomspace(0.35, 1 / 0.35, 13)
"""f_k; the middle one is 1."""
SPREAD = 0.5
"""Standard deviation of ln f in the weights."""


def consensus_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of the largest contours of maps (B, H, W) at thresholds around τ, the one with the best score first."""
    check_threshold(threshold)
    levels = checked_levels(maps)
    thresholds = np.minimum(threshold * FACTORS, 1.0)
    found = [largest_boxes(levels, float(one)) for one in thresholds]
    boxes = np.stack([box for box, _ in found], axis=1).astype(np.float64)  # (B, T, 4)
    weights = np.exp(-0.5 * (np.log(FACTORS) / SPREAD) ** 2) * np.stack([there for _, there in found], axis=1)
    overlaps = iou(boxes[:, :, None], boxes[:, None])
    scores = (overlaps * weights[:, None]).sum(2) / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    return [_ranked(*one, thresholds) for one in zip(boxes, scores, weights > 0, strict=True)]


def _ranked(boxes: Float64Array, scores: Float64Array, there: np.ndarray, thresholds: Float64Array) -> Candidates:
    """The different boxes of one frame by score; of equal ones the first."""
    order = np.flatnonzero(there)[np.argsort(-scores[there], kind="stable")]
    _, first = np.unique(boxes[order], axis=0, return_index=True)
    kept = order[np.sort(first)]
    return Candidates(boxes[kept], scores[kept], thresholds[kept], len(kept))
