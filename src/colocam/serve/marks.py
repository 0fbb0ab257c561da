"""From the actions of people to what each frame shows: marked frames, frames between them, predictions elsewhere.

Between two marked frames of one shot with nothing marked in between, there is no object if both show none. If both have
a drawn box, the box is interpolated, unless the model finds no object somewhere in between: it may have left and come
back. Then the frames where it finds none are asked about, and all predictions in between stay until a person answers.
Everywhere else the prediction stays. ``page/marks.js`` does the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.serve.actions import Action
from colocam.types import Float64Array

PREDICTED, ACCEPTED, NONE, BOX, FOLLOWS, FOLLOWS_NONE, ASKED = range(7)
"""What a frame shows: the prediction; the prediction, accepted; no object; a drawn box; an interpolated box; no object
because the marked frames around it show none; the prediction, with the question whether the object is in the
interpolated box."""
CHECKED, INTERPOLATED = (ACCEPTED, NONE, BOX), (FOLLOWS, FOLLOWS_NONE)
"""Frames that a person has seen and said something about; frames that only lie between such frames."""
_CODES = {"accepted": ACCEPTED, "none": NONE, "box": BOX}


class Marks(NamedTuple):
    """What people said about N frames.

    Attributes:
        state: (N,) one of :data:`PREDICTED` … :data:`ASKED`.
        box: (N, 4) drawn, interpolated and accepted boxes, also those that are asked about; NaN elsewhere.
        tag: (N,) class, "" where it was not changed.
        kept: (N,) whether the event of an accepted frame states its box, or that it has none.
        accepted_tag: (N,) class that was accepted, "" where it is not stated.
    """

    state: npt.NDArray[np.uint8]
    box: Float64Array
    tag: list[str]
    kept: npt.NDArray[np.bool_]
    accepted_tag: list[str]


def marks_of(
    actions: Iterable[Action],
    frames: npt.NDArray[np.int64],
    cuts: npt.NDArray[np.bool_],
    absent: npt.NDArray[np.bool_] | None = None,
) -> Marks:
    """Replay actions.

    Args:
        actions: in order.
        frames: (N,) indices of the frames of the film, ascending.
        cuts: (N,) whether a frame begins a new shot.
        absent: (N,) whether the model finds no object in a frame; None: not known yet.
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
    _follow(state, box, frames, cuts, np.zeros(len(frames), bool) if absent is None else absent)
    return Marks(state, box, tag, kept, accepted_tag)


def _follow(
    state: npt.NDArray[np.uint8],
    box: Float64Array,
    frames: npt.NDArray[np.int64],
    cuts: npt.NDArray[np.bool_],
    absent: npt.NDArray[np.bool_],
) -> None:
    """Fill the frames between two marked ones in place."""
    marked = np.flatnonzero(state)
    shot = np.cumsum(cuts)
    for a, b in zip(marked[:-1].tolist(), marked[1:].tolist(), strict=True):
        if b - a < 2 or shot[a] != shot[b] or state[a] != state[b] or state[a] == ACCEPTED:
            continue
        between = np.arange(a + 1, b)
        if state[a] == NONE:
            state[between] = FOLLOWS_NONE
            continue
        asked = between[absent[between]]
        filled, code = (asked, ASKED) if len(asked) else (between, FOLLOWS)
        share = ((frames[filled] - frames[a]) / (frames[b] - frames[a]))[:, None]
        state[filled] = code
        box[filled] = box[a] + share * (box[b] - box[a])
