"""Typical failures, found by rule; the paper shows examples chosen by hand."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.data.samples import Boxes
from colocam.types import Float64Array

HIT, MISS = 0.5, 0.1
SEVERAL, WRONG, EMPTY, SHIFT = "Several objects in one box", "Wrong object", "empty", "Sudden shift"
RULES = {
    SEVERAL: f"at least two true boxes, at least half of two of them inside the predicted box, IoU below {HIT}",
    WRONG: f"IoU below {MISS}, for the CAM that gave the seeds, too",
    EMPTY: "a box in a frame without the object",
    SHIFT: f"boxes of neighbouring labelled frames of a clip with IoU below {HIT}, true boxes with at least {HIT}",
}
"""Group of the gallery → its rule in words."""
SHOWN = 3
"""Examples per kind, each of another clip."""


def find_failures(
    boxes: Float64Array,
    ious: Float64Array,
    cam_ious: Float64Array,
    true_boxes: Sequence[Boxes],
    clips: npt.NDArray[np.int64],
) -> dict[str, list[int]]:
    """Indices of the frames that match each rule, in order; of a sudden shift the second frame.

    Args:
        boxes: (N, 4) predicted corners in model pixels, NaN where there is none.
        ious: (N,) with the best true box; NaN without the object.
        cam_ious: (N,) the same for the class activation map.
        true_boxes: (k, 4) of each frame.
        clips: (N,) index of the clip; frames of a clip are consecutive and in order.
    """
    found: dict[str, list[int]] = {group: [] for group in RULES}
    has_box: npt.NDArray[np.bool_] = np.isfinite(boxes.sum(1))
    for i, true in enumerate(true_boxes):
        if len(true) == 0:
            if has_box[i]:
                found[EMPTY].append(i)
            continue
        if len(true) > 1 and has_box[i] and ious[i] < HIT and (_inside(true, boxes[i]) >= 0.5).sum() > 1:
            found[SEVERAL].append(i)
        if ious[i] < MISS and cam_ious[i] < MISS:
            found[WRONG].append(i)
        neighbours = i > 0 and clips[i] == clips[i - 1] and has_box[i] and has_box[i - 1] and len(true_boxes[i - 1]) > 0
        if neighbours and iou(boxes[i], boxes[i - 1]) < HIT <= _best(true, true_boxes[i - 1]):
            found[SHIFT].append(i)
    return found


def examples(found: dict[str, list[int]], clips: npt.NDArray[np.int64]) -> list[tuple[int, str]]:
    """A few frames of each kind, the first of each clip; for a sudden shift also the frame before it."""
    chosen: list[tuple[int, str]] = []
    for group, frames in found.items():
        first = list(dict.fromkeys(int(clips[i]) for i in frames))[:SHOWN]
        for clip in first:
            frame = next(i for i in frames if clips[i] == clip)
            chosen += [(frame - 1, group), (frame, group)] if group == SHIFT else [(frame, group)]
    return chosen


def _inside(true: Boxes, box: Float64Array) -> Float64Array:
    """(k,) share of each true box that lies in ``box``."""
    sides = np.minimum(true[:, 2:], box[2:]) - np.maximum(true[:, :2], box[:2])
    whole = (true[:, 2:] - true[:, :2]).prod(1)
    return np.asarray(np.maximum(sides, 0).prod(1) / np.maximum(whole, 1e-9), np.float64)


def _best(first: Boxes, second: Boxes) -> float:
    """The largest IoU between boxes of two frames."""
    return float(iou(first[:, None], second[None]).max())
