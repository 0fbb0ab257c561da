"""From the actions of people to what each frame shows: marked frames, frames between them, predictions elsewhere.

Between two marked frames of one shot with nothing marked in between, the box is interpolated if both have a drawn box,
and there is no object if both show none. Everywhere else the prediction stays. ``page/marks.js`` does the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.serve.actions import Action
from colocam.types import Float64Array

PREDICTED, ACCEPTED, NONE, BOX, FOLLOWS, FOLLOWS_NONE = range(6)
"""What a frame shows: the prediction; the prediction, accepted; no object; a drawn box; an interpolated box; no object
because the marked frames around it show none."""
_CODES = {"accepted": ACCEPTED, "none": NONE, "box": BOX}


class Marks(NamedTuple):
    """What people said about N frames.

    Attributes:
        state: (N,) one of :data:`PREDICTED` … :data:`FOLLOWS_NONE`.
        box: (N, 4) drawn, interpolated and accepted boxes, NaN elsewhere.
        tag: (N,) class, "" where it was not changed.
        kept: (N,) whether the event of an accepted frame states its box, or that it has none.
        accepted_tag: (N,) class that was accepted, "" where it is not stated.
    """

    state: npt.NDArray[np.uint8]
    box: Float64Array
    tag: list[str]
    kept: npt.NDArray[np.bool_]
    accepted_tag: list[str]


def marks_of(actions: Iterable[Action], frames: npt.NDArray[np.int64], cuts: npt.NDArray[np.bool_]) -> Marks:
    """Replay actions.

    Args:
        actions: in order.
        frames: (N,) indices of the frames of the film, ascending.
        cuts: (N,) whether a frame begins a new shot.
    """
    state = np.zeros(len(frames), np.uint8)
    box = np.full((len(frames), 4), np.nan)
    tag, accepted_tag = [""] * len(frames), [""] * len(frames)
    kept = np.zeros(len(frames), bool)
    for action in actions:
        first, last = np.searchsorted(frames, (action.start, action.stop)).tolist()
        rows = slice(first, last)
        if action.kind == "class":
            tag[rows] = [action.tag or ""] * (last - first)
            continue
        if action.kind == "accepted":  # what is shown is right, so a drawn box stays
            stated = action.boxes if action.boxes is not None and len(action.boxes) == last - first else None
            for at in (first + np.flatnonzero(state[rows] == PREDICTED)).tolist():
                state[at], accepted_tag[at] = ACCEPTED, action.tag or ""
                if stated is not None:
                    kept[at], box[at] = True, stated[at - first] or np.nan
            continue
        state[rows] = _CODES.get(action.kind, PREDICTED)
        box[rows] = action.box if action.box is not None else np.nan
        kept[rows] = False
        accepted_tag[rows] = [""] * (last - first)
        if action.kind == "clear":
            tag[rows] = [""] * (last - first)
    _follow(state, box, frames, cuts)
    return Marks(state, box, tag, kept, accepted_tag)


def _follow(
    state: npt.NDArray[np.uint8], box: Float64Array, frames: npt.NDArray[np.int64], cuts: npt.NDArray[np.bool_]
) -> None:
    """Fill the frames between two marked ones in place."""
    marked = np.flatnonzero(state)
    shot = np.cumsum(cuts)
    for a, b in zip(marked[:-1].tolist(), marked[1:].tolist(), strict=True):
        if b - a < 2 or shot[a] != shot[b] or state[a] != state[b] or state[a] == ACCEPTED:
            continue
        between = slice(a + 1, b)
        if state[a] == NONE:
            state[between] = FOLLOWS_NONE
            continue
        share = ((frames[between] - frames[a]) / (frames[b] - frames[a]))[:, None]
        state[between] = FOLLOWS
        box[between] = box[a] + share * (box[b] - box[a])
