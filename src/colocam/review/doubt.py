"""Doubt about a box: four signals that need no true boxes, combined into one number.

| signal       | frame with a box                                               | frame without a box                |
|--------------|----------------------------------------------------------------|------------------------------------|
| `faint`      | 1 − score / usual score: low map values inside the box         | –                                  |
| `rival`      | 1 − margin: another region explains the map as well            | –                                  |
| `jump`       | 1 − IoU with the boxes of the frames before and after          | both of these have a box           |
| `classifier` | 1 − presence: the classifier does not find the object          | presence: the classifier finds it  |

With signals s in 0–1 and weights w, doubt = 1 − Π (1 − w·s): one strong signal is enough. A missing column (presence,
margin) gives no signal. Nothing here is learnt from boxes; the weights were chosen by hand.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.types import Float64Array

Integers = npt.NDArray[np.int64]

WEIGHTS = {"faint": 1.0, "rival": 0.3, "jump": 0.3, "classifier": 0.3}
"""Weights of the signals, chosen on validation videos of the demo (docs/guide/review.md)."""
USUAL = 0.9
"""Quantile of all scores that counts as the usual score of a good box; it differs between models."""
PARTNERS = 100
"""Boxes of a neighbouring frame, the first ones of the table, that a box is compared with at most."""
WORDS = {
    "faint": "little heat inside the box",
    "rival": "another region is as likely",
    "jump": "the box jumps",
    "classifier": "the classifier does not find the object",
}
WORDS_WITHOUT_BOX = {
    "jump": "no box, but boxes before and after",
    "classifier": "no box, but the classifier finds the object",
}


class Rows(NamedTuple):
    """n rows of localisation tables, sorted by video and frame; a frame has one or more rows.

    Attributes:
        video: (n,) index of the video.
        frame: (n,) index of the frame in it.
        pts: (n,) seconds.
        box: (n, 4), NaN where there is none.
        score: (n,) mean foreground probability inside the box, 0–1.
        presence: (n,) probability that the object is present, 0–1, NaN where unknown.
        margin: (n,) how much better the box explains the map than any other region, ≤ 1, NaN where unknown.
    """

    video: Integers
    frame: Integers
    pts: Float64Array
    box: Float64Array
    score: Float64Array
    presence: Float64Array
    margin: Float64Array


def frames_of(rows: Rows) -> tuple[Integers, Integers]:
    """(n,) index of the frame of each row, counted over all videos, and the first row of each frame."""
    new = np.append(True, (np.diff(rows.video) != 0) | (np.diff(rows.frame) != 0))
    return np.cumsum(new) - 1, np.flatnonzero(new)


def signs(rows: Rows) -> dict[str, Float64Array]:
    """Each signal of each row, (n,) in 0–1."""
    there = np.isfinite(rows.box[:, 0])
    usual = float(np.quantile(rows.score[there], USUAL)) if there.any() else 1.0
    faint = 1 - rows.score / max(usual, 1e-9)
    absent = np.where(there, 1 - rows.presence, rows.presence)
    found = {
        "faint": np.where(there, faint, 0),
        "rival": np.where(there, 1 - rows.margin, 0),
        "jump": jumps(rows),
        "classifier": absent,
    }
    return {name: np.clip(np.nan_to_num(sign), 0, 1) for name, sign in found.items()}


def doubts(found: dict[str, Float64Array]) -> Float64Array:
    """(n,) 1 − Π (1 − w·s), 0–1."""
    sure: Float64Array = np.prod([1 - weight * found[name] for name, weight in WEIGHTS.items()], axis=0)
    return 1 - sure


def reason(found: dict[str, float], *, box: bool) -> str:
    """The strongest signal of a row in words, and a second one if it is at least half as strong."""
    words = WORDS if box else WORDS_WITHOUT_BOX
    weighted = {name: weight * found[name] for name, weight in WEIGHTS.items() if name in words}
    most = max(weighted.values())
    said = sorted((name for name in weighted if weighted[name] >= max(most / 2, 0.05)), key=lambda n: -weighted[n])
    return "; ".join(words[name] for name in said[:2]) or "no single reason"


def jumps(rows: Rows) -> Float64Array:
    """(n,) 1 − mean IoU with the best box of the previous and of the next listed frame, where they exist.

    Of a frame with more than :data:`PARTNERS` rows only the first ones count, so that time grows with the rows.
    For a frame without a box: 1 if both have one, else 0.
    """
    at, start = frames_of(rows)
    size = np.diff(np.append(start, len(rows.frame)))
    there = np.isfinite(rows.box[:, 0])
    overlaps = []
    for step in (-1, 1):
        other = at + step
        known = (other >= 0) & (other < len(start))
        other = np.where(known, other, at)
        known &= rows.video[start[other]] == rows.video
        best = np.zeros(len(at))
        for i in range(min(int(size.max(initial=0)), PARTNERS)):
            partner = start[other] + np.minimum(i, size[other] - 1)
            overlap = iou(rows.box, rows.box[partner])
            best = np.maximum(best, np.where(there, overlap, there[partner]))
        overlaps.append(np.where(known, best, np.nan))
    before, after = overlaps
    mean = np.where(np.isnan(before), after, np.where(np.isnan(after), before, (before + after) / 2))
    with_box = 1 - np.where(np.isnan(mean), 1.0, mean)
    without = np.nan_to_num(before) * np.nan_to_num(after)
    jump: Float64Array = np.where(there, with_box, without)
    return jump
