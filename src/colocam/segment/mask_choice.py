"""Which of a frame's masks is the object: the one that agrees with the heat map and with its neighbours in the shot.

The soft IoU of a mask m with the map s is Σ m·t / (Σ m + Σ t − Σ m·t), where t rises from 0 to 1 while s rises from a
to b. :func:`mask_scores` makes a score of it, of what the segmenter expects, and of the masks' agreement.
Over the frames of a shot the path x_1 … x_T takes one mask of each frame and maximises

    Σ_t score(x_t) − jump Σ_t (1 − IoU(x_t, x_{t+1})), with the IoU of the masks' boxes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.segment.refine_settings import RefineSettings
from colocam.segment.segmenter import Array
from colocam.types import Float64Array, Levels


def targets(levels: Levels, fade: tuple[float, float]) -> Levels:
    """Targets clip((s − a) / (b − a), 0, 1) in 8 bits, for maps s in 8 bits and (a, b) = ``fade``."""
    low, high = fade
    table = np.clip((np.arange(256) - 255 * low) / (high - low), 0, 255).astype(np.uint8)
    faded: Levels = table[levels]
    return faded


def soft_iou(masks: Array, target: Array) -> Float64Array:
    """Soft IoU (B, n) of masks (B, n, h, w) of bool and targets (B, h, w) in 8 bits; 0 where both are empty.

    Sums are of integers, so that arrays and tensors of any device give the same numbers.
    """
    common = to_host((masks * target[:, None]).sum((-2, -1))).astype(np.float64)
    area = 255 * to_host(masks.sum((-2, -1))).astype(np.float64)
    union = area + to_host(target.sum((-2, -1))).astype(np.float64)[:, None] - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def mask_scores(
    overlaps: Float64Array, quality: Float64Array, boxes: Float64Array, settings: RefineSettings
) -> Float64Array:
    """Scores (B, n) of masks in 0–1, (s qᵃ + λ m) / (1 + λ); 0 for masks that share nothing with the heat map.

    The mean m of the IoU of a mask's box with the boxes of all masks of the frame is their agreement: prompts of
    different kinds that find the same object give the same mask.

    Args:
        overlaps: s (B, n), the soft IoU with the heat map.
        quality: q (B, n) the IoU with the true mask that the segmenter expects.
        boxes: (B, n, 4) extents of the masks.
        settings: a and λ.
    """
    agreement = iou(boxes[:, :, None], boxes[:, None]).mean(2)
    fit = overlaps * quality.clip(0, 1) ** settings.quality
    return np.where(overlaps > 0, (fit + settings.agreement * agreement) / (1 + settings.agreement), 0)


def extents(masks: Array) -> Float64Array:
    """Boxes (…, 4) x1, y1, x2, y2 of masks (…, h, w) of bool, in pixels; 0, 0, 0, 0 for an empty mask."""
    sides = []
    for axis in (-2, -1):
        filled = to_host(masks.any(axis))
        first, last = filled.argmax(-1), filled.shape[-1] - filled[..., ::-1].argmax(-1)
        some = filled.any(-1)
        sides.append((first * some, last * some))
    (x1, x2), (y1, y2) = sides
    return np.stack([x1, y1, x2, y2], axis=-1).astype(np.float64)


def best_path(
    scores: Float64Array, boxes: Float64Array, jump: float, before: Float64Array | None = None
) -> npt.NDArray[np.int64]:
    """The best mask of each frame, (T,) indices.

    Args:
        scores: (T, n) of the masks.
        boxes: (T, n, 4) of the masks.
        jump: cost of a change to a box without overlap.
        before: (4,) box of the frame before these; None at the beginning of a shot.
    """
    length, count = scores.shape
    origins = np.zeros((length, count), np.int64)
    totals = np.zeros(count)
    for at in range(length):
        last = boxes[at - 1] if at else before
        if last is not None:
            worth = totals[:, None] - jump * (1 - iou(np.broadcast_to(last, (count, 4))[:, None], boxes[at]))
            origins[at], totals = worth.argmax(0), worth.max(0)
        totals = totals + scores[at]
    path = np.zeros(length, np.int64)
    if length:
        path[-1] = totals.argmax()
    for at in range(length - 1, 0, -1):
        path[at - 1] = origins[at, path[at]]
    return path


def to_host(array: "Array | np.generic") -> npt.NDArray[Any]:
    """A NumPy array of an array or tensor."""
    return np.asarray(array if isinstance(array, np.generic | np.ndarray) else array.cpu())
