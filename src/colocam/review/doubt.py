"""How doubtful is a box? Four signs that need no truth, and what they say together.

| sign         | of a frame with a box                                          | of a frame without one             |
|--------------|----------------------------------------------------------------|------------------------------------|
| `faint`      | 1 − score / usual score: little heat inside the box            | –                                  |
| `rival`      | 1 − margin: another place explains the map as well             | –                                  |
| `jump`       | 1 − IoU with the boxes of the frames before and after          | both of these have a box           |
| `classifier` | 1 − presence: the map sees an object, the classifier does not  | presence: the other way round      |

Each sign s in 0–1 is believed by its weight w, and one is enough: doubt = 1 − Π (1 − w·s). What a table does not say
(no presence, no margin) is no sign. Nothing here was learnt from boxes; the weights were chosen by hand.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.types import Float64Array

Integers = npt.NDArray[np.int64]

WEIGHTS = {"faint": 1.0, "rival": 0.3, "jump": 0.3, "classifier": 0.3}
"""How far each sign is believed; chosen on validation videos of the demo, see docs/review.md."""
USUAL = 0.9
"""Quantile of all scores that counts as the score of a good box: maps of one model may be paler than another's."""
WORDS = {
    "faint": "little heat inside the box",
    "rival": "another place looks as likely",
    "jump": "the box jumps",
    "classifier": "the classifier hardly sees it",
}
WORDS_WITHOUT_BOX = {"jump": "no box here, but before and after", "classifier": "no box, but the classifier sees it"}


class Rows(NamedTuple):
    """Rows of tables, sorted by video and frame; a frame has one or several. n rows.

    Attributes:
        video: (n,) number of the video.
        frame: (n,) number of the frame in it.
        pts: (n,) seconds.
        box: (n, 4), not-a-number where there is none.
        score: (n,) mean foreground probability inside the box, 0–1.
        presence: (n,) probability that the object is there, 0–1, not-a-number where unknown.
        margin: (n,) how much better the box explains the map than any other place, ≤ 1, not-a-number where unknown.
    """

    video: Integers
    frame: Integers
    pts: Float64Array
    box: Float64Array
    score: Float64Array
    presence: Float64Array
    margin: Float64Array


def frames_of(rows: Rows) -> tuple[Integers, Integers]:
    """(n,) which frame each row belongs to, counted over all videos, and the first row of each frame."""
    new = np.append(True, (np.diff(rows.video) != 0) | (np.diff(rows.frame) != 0))
    return np.cumsum(new) - 1, np.flatnonzero(new)


def signs(rows: Rows) -> dict[str, Float64Array]:
    """Give each sign of each row, (n,) in 0–1."""
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
    sure: Float64Array = np.prod([1 - WEIGHTS[name] * sign for name, sign in found.items()], axis=0)
    return 1 - sure


def reason(found: dict[str, float], *, box: bool) -> str:
    """Say in words what speaks most against a row, and what speaks at least half as much."""
    words = WORDS if box else WORDS_WITHOUT_BOX
    weighted = {name: WEIGHTS[name] * sign for name, sign in found.items() if name in words}
    most = max(weighted.values())
    said = sorted((name for name in weighted if weighted[name] >= max(most / 2, 0.05)), key=lambda n: -weighted[n])
    return "; ".join(words[name] for name in said[:2]) or "nothing in particular"


def jumps(rows: Rows) -> Float64Array:
    """(n,) 1 − mean IoU with the best box of the listed frame before and of that after it, as far as there are any.

    Of a frame without a box: 1 if both have one, else 0.
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
        for place in range(int(size.max(initial=0))):
            partner = start[other] + np.minimum(place, size[other] - 1)
            overlap = iou(rows.box, rows.box[partner])
            best = np.maximum(best, np.where(there, overlap, there[partner]))
        overlaps.append(np.where(known, best, np.nan))
    before, after = overlaps
    mean = np.where(np.isnan(before), after, np.where(np.isnan(after), before, (before + after) / 2))
    with_box = 1 - np.where(np.isnan(mean), 1.0, mean)
    without = np.nan_to_num(before) * np.nan_to_num(after)
    jump: Float64Array = np.where(there, with_box, without)
    return jump
