"""What a person does to the frames of a video, as the page sends it and as it is stored."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from colocam.types import Float64Array

MOST_FRAMES = 1 << 32
FrameIndex = Annotated[int, Field(ge=0, le=MOST_FRAMES)]
Coordinate = Annotated[float, Field(ge=-1, le=1 << 16, allow_inf_nan=False)]
Corners = Annotated[list[Coordinate], Field(min_length=4, max_length=4)]
_STRICT = ConfigDict(strict=True, extra="forbid")
PREDICTED, ACCEPTED, NONE, BOX, FOLLOWS, FOLLOWS_NONE, ASKED = range(7)
"""What a frame shows: the prediction; the prediction, accepted; no object; a drawn box; an interpolated box; no object
because the marked frames around it show none; the prediction, with the question whether the object is in the
interpolated box."""
CHECKED, INTERPOLATED = (ACCEPTED, NONE, BOX), (FOLLOWS, FOLLOWS_NONE)
"""Frames that a person has seen and said something about; frames that only lie between such frames."""
_CODES = {"accepted": ACCEPTED, "none": NONE, "box": BOX}


class Action(BaseModel):
    """One statement about the frames ``start`` to ``stop`` − 1.

    Attributes:
        kind: box: the object is in ``box``; none: no object; accepted: what is shown is right; class: the class is
            ``tag``; clear: back to the prediction.
        start: index of the first frame.
        stop: index after the last frame.
        box: x1, y1, x2, y2 in pixels of the video, for ``box``.
        tag: class, for ``class``; for ``accepted`` the class that was shown.
        boxes: for ``accepted``: the box that was shown in each frame of the video from ``start``, None where there was
            none. So what a person accepted stays, whichever model is used later.
    """

    model_config = _STRICT

    kind: Literal["box", "none", "accepted", "class", "clear"]
    start: FrameIndex
    stop: FrameIndex
    box: Corners | None = None
    tag: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    boxes: Annotated[list[Corners | None], Field(max_length=1 << 20)] | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> "Action":
        if not self.start < self.stop:
            raise ValueError(f"stop must be above start, got {self.start} and {self.stop}")
        if (self.kind == "box") != (self.box is not None):
            raise ValueError("a box is needed for kind 'box' and for no other")
        if (self.kind == "class") != (self.tag is not None) and self.kind != "accepted":
            raise ValueError("a tag is needed for kind 'class', is allowed for 'accepted', and for no other")
        if self.boxes is not None and self.kind != "accepted":
            raise ValueError("boxes are for kind 'accepted' alone")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise ValueError(f"a box needs x1 < x2 and y1 < y2, got {self.box}")
        return self


class Change(BaseModel):
    """One step of the history of a film: an edit, which is undone as a whole, or undo, or redo."""

    model_config = _STRICT

    kind: Literal["edit", "undo", "redo"]
    actions: Annotated[list[Action], Field(max_length=1 << 20)] = []

    @model_validator(mode="after")
    def _is_sound(self) -> "Change":
        if (self.kind == "edit") != bool(self.actions):
            raise ValueError("an edit needs actions; undo and redo have none")
        return self

    def as_json(self) -> dict[str, Any]:
        """What the page gets, without what is not stated."""
        return self.model_dump(exclude_none=True)


class History(NamedTuple):
    """Edits that count, in order, and edits that were undone, the last one first to be redone."""

    done: list[Change]
    undone: list[Change]

    @property
    def actions(self) -> list[Action]:
        """All actions that count, in order."""
        return [action for change in self.done for action in change.actions]


def history_of(changes: Iterable[Change]) -> History:
    """Replay the stored changes of a video."""
    done: list[Change] = []
    undone: list[Change] = []
    for change in changes:
        if change.kind == "edit":
            done.append(change)
            undone.clear()
        elif change.kind == "undo" and done:
            undone.append(done.pop())
        elif change.kind == "redo" and undone:
            done.append(undone.pop())
    return History(done, undone)


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
        frames: (N,) indices of the frames of the video, ascending.
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
