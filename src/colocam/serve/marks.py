"""What a person does to the objects in the frames of a video, as the page sends it and as it is stored.

Objects have numbers, which are never used twice. Number 1 begins as the object that the model finds in each frame;
people add others. Boxes of the model belong to a number frame by frame, so tracks can be split and joined.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from colocam.types import Float64Array

MOST_FRAMES = 1 << 32
FIRST = 1
"""Number of the object that the model finds; the only one, where nobody adds another."""
FrameIndex = Annotated[int, Field(ge=0, le=MOST_FRAMES)]
MOST_MOVES = 1000
"""Actions of one correction that split or join tracks: each looks at all frames of two objects."""
Coordinate = Annotated[float, Field(ge=-1, le=1 << 16, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=FIRST, le=999)]
Corners = Annotated[list[Coordinate], Field(min_length=4, max_length=4)]
_STRICT = ConfigDict(strict=True, extra="forbid")
PREDICTED, ACCEPTED, NONE, BOX, FOLLOWS, FOLLOWS_NONE, ASKED = range(7)
"""What a frame shows: the prediction; the prediction, accepted; no object; a drawn box; an interpolated box; no object
because the marked frames around it show none; an interpolated box, with the question whether the object is there."""
CHECKED, INTERPOLATED = (ACCEPTED, NONE, BOX), (FOLLOWS, FOLLOWS_NONE)
"""Frames that a person has seen and said something about; frames that only lie between such frames."""
SHOWS_BOX = (BOX, FOLLOWS, ASKED)
"""Frames that show the box of the marks, not that of the model."""
_BY_SURENESS = (PREDICTED, ASKED, FOLLOWS, FOLLOWS_NONE, ACCEPTED, NONE, BOX)
_CODES = {"accepted": ACCEPTED, "none": NONE, "box": BOX}


class Action(BaseModel):
    """One statement about an object in the frames ``start`` to ``stop`` − 1.

    Attributes:
        kind: box: the object is in ``box``; none: it is not there; accepted: what is shown is right; class: the class
            is ``tag``; clear: back to the prediction; follow: a box was carried on to ``boxes``, which nobody has
            checked, so what people marked stays; add: a new object, which the model found in ``boxes``; move: what
            these frames say of this object is said of the object ``into``: part of a track, to split it, or all of it,
            to join two; video: the class of the whole video is ``tag``, None: the model finds it. What was said of
            the class of single frames before counts no more.
        start: index of the first frame.
        stop: index after the last frame.
        track: number of the object; None: :data:`FIRST`.
        into: number of the other object, for ``move``.
        box: x1, y1, x2, y2 in pixels of the video, for ``box``.
        tag: class, for ``class``, ``add`` and ``video``; for ``accepted`` the class that was shown.
        boxes: for ``accepted``, ``add`` and ``follow``: the box that was shown in each frame of the video from
            ``start``, None where there was none. So what a person accepted stays, whichever model is used later.
    """

    model_config = _STRICT

    kind: Literal["box", "none", "accepted", "class", "clear", "follow", "add", "move", "video"]
    start: FrameIndex
    stop: FrameIndex
    track: Number | None = None
    into: Number | None = None
    box: Corners | None = None
    tag: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    boxes: Annotated[list[Corners | None], Field(max_length=1 << 20)] | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> "Action":
        if not self.start < self.stop:
            raise ValueError(f"stop must be above start, got {self.start} and {self.stop}")
        if (self.kind == "box") != (self.box is not None):
            raise ValueError("a box is needed for kind 'box' and for no other")
        if (self.kind in {"class", "add"}) != (self.tag is not None) and self.kind not in {"accepted", "video"}:
            raise ValueError("kinds 'class' and 'add' need a tag; else only 'accepted' and 'video' may have one")
        if self.kind == "video" and self.track is not None:
            raise ValueError("the class of a video is that of no track")
        if self.boxes is not None and self.kind not in {"accepted", "add", "follow"}:
            raise ValueError("boxes are for kinds 'accepted', 'add' and 'follow' alone")
        if self.kind == "follow" and (self.boxes is None or None in self.boxes):
            raise ValueError("kind 'follow' needs a box for each frame")
        if self.kind == "add" and (self.boxes is None or self.number == FIRST):
            raise ValueError("kind 'add' needs boxes, and a track above 1")
        if (self.kind == "move") != (self.into is not None) or self.into == self.number:
            raise ValueError("kind 'move', and no other, needs the track that it moves into, another one")
        if self.box is not None and not (self.box[0] < self.box[2] and self.box[1] < self.box[3]):
            raise ValueError(f"a box needs x1 < x2 and y1 < y2, got {self.box}")
        return self

    @property
    def number(self) -> int:
        """Number of the object."""
        return self.track or FIRST


class Correction(BaseModel):
    """One step of the history of a video: what a person said, which is undone as a whole, or undo, or redo.

    The kind of the first is stored as ``edit``.
    """

    model_config = _STRICT

    kind: Literal["edit", "undo", "redo"]
    actions: Annotated[list[Action], Field(max_length=1 << 20)] = []

    @model_validator(mode="after")
    def _is_sound(self) -> "Correction":
        if (self.kind == "edit") != bool(self.actions):
            raise ValueError("a correction needs actions; undo and redo have none")
        if sum(action.kind == "move" for action in self.actions) > MOST_MOVES:
            raise ValueError(f"a correction may split or join at most {MOST_MOVES} times")
        return self

    def as_json(self) -> dict[str, Any]:
        """What the page gets, without what is not stated."""
        return self.model_dump(exclude_none=True)


class History(NamedTuple):
    """Corrections that count, in order, and those that were undone, the last one first to be redone.

    It never changes: several threads may go through one.
    """

    done: list[Correction]
    undone: list[Correction]

    def after(self, correction: Correction) -> "History":
        """The history with one more correction."""
        done, undone = self
        if correction.kind == "edit":
            return History([*done, correction], [])
        if correction.kind == "undo" and done:
            return History(done[:-1], [*undone, done[-1]])
        if correction.kind == "redo" and undone:
            return History([*done, undone[-1]], undone[:-1])
        return self

    @property
    def actions(self) -> list[Action]:
        """All actions that count, in order."""
        return [action for correction in self.done for action in correction.actions]

    @property
    def video_class(self) -> str | None:
        """Class of the whole video, "": the model finds it; None: nobody said anything about it."""
        stated = (
            action.tag or ""
            for correction in reversed(self.done)
            for action in reversed(correction.actions)
            if action.kind == "video"
        )
        return next(stated, None)


def history_of(corrections: Iterable[Correction]) -> History:
    """Replay the stored corrections of a video."""
    done: list[Correction] = []
    undone: list[Correction] = []
    for correction in corrections:
        if correction.kind == "edit":
            done.append(correction)
            undone.clear()
        elif correction.kind == "undo" and done:
            undone.append(done.pop())
        elif correction.kind == "redo" and undone:
            done.append(undone.pop())
    return History(done, undone)


class Marks(NamedTuple):
    """What people said about one object in N frames.

    Attributes:
        state: (N,) one of :data:`PREDICTED` … :data:`ASKED`.
        box: (N, 4) drawn, interpolated and accepted boxes, also those that are asked about; NaN elsewhere.
        tag: (N,) class, "" where it was not changed.
        kept: (N,) whether the event of an accepted frame states its box, or that it has none.
        accepted_tag: (N,) class that was accepted, "" where it is not stated.
        main: (N,) whether the object that the model in use finds in the frame is this one; true of one object a frame.
        base: (N, 4) box of a further object of the model, as it was found when this object was added; NaN elsewhere.
        loose: (N,) whether a frame followed from marked frames before a track was split or joined: it shows the same
            until it lies between two marked frames again, or something is said of it.
    """

    state: npt.NDArray[np.uint8]
    box: Float64Array
    tag: list[str]
    kept: npt.NDArray[np.bool_]
    accepted_tag: list[str]
    main: npt.NDArray[np.bool_]
    base: Float64Array
    loose: npt.NDArray[np.bool_]

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """(N,) whether a frame is a frame of this object: there is a prediction, or something was said."""
        counted: npt.NDArray[np.bool_] = self.main | ~np.isnan(self.base[:, 0]) | (self.state != PREDICTED)
        return counted

    def predicted(self, boxes: Float64Array) -> Float64Array:
        """(N, 4) boxes without what people said; ``boxes`` (N, 4) are those of the model in use."""
        return np.where((self.main & ~np.isnan(boxes[:, 0]))[:, None], boxes, self.base)


def _unmarked(count: int, *, main: bool) -> Marks:
    return Marks(
        state=np.zeros(count, np.uint8),
        box=np.full((count, 4), np.nan),
        tag=[""] * count,
        kept=np.zeros(count, bool),
        accepted_tag=[""] * count,
        main=np.full(count, main),
        base=np.full((count, 4), np.nan),
        loose=np.zeros(count, bool),
    )


def objects_of(
    actions: Iterable[Action],
    frames: npt.NDArray[np.int64],
    cuts: npt.NDArray[np.bool_],
    absent: npt.NDArray[np.bool_] | None = None,
) -> dict[int, Marks]:
    """Replay actions; the marks of each object that is left, by its number.

    Args:
        actions: in order.
        frames: (N,) indices of the frames of the video, ascending.
        cuts: (N,) whether a frame begins a new shot.
        absent: (N,) whether the model finds no object in a frame; None: not known yet.
    """
    away = np.zeros(len(frames), bool) if absent is None else absent
    objects = {FIRST: _unmarked(len(frames), main=True)}
    for (kind, _), run in groupby(list(actions), _of_a_run):
        same = list(run)
        for number in (number for action in same for number in (action.number, action.into)):
            if number is not None and number not in objects:
                objects[number] = _unmarked(len(frames), main=False)
        if kind in _CODES and len(same) > 1:
            _set_frames(objects[same[0].number], same, frames)
            continue
        for action in same:
            first, last = np.searchsorted(frames, (action.start, action.stop)).tolist()
            if action.kind == "video":
                for marks in objects.values():
                    _forget_classes(marks)
            elif action.into is None:
                _apply(objects[action.number], action, first, last)
            else:
                source, target = objects[action.number], objects[action.into]
                for marks in (source, target):
                    _settle(marks, frames, cuts, away)
                _move(source, target, first, last)
    there = {number: marks for number, marks in sorted(objects.items()) if marks.counted.any()}
    for marks in there.values():
        _follow(marks, frames, cuts, away)
    return there


def _of_a_run(action: Action) -> tuple[str, object]:
    """Equal for actions that can be replayed together: what one object is in single frames, as an import states it."""
    alone = action.kind in {"box", "none"} and action.stop == action.start + 1
    return action.kind, action.number if alone else id(action)


def _set_frames(marks: Marks, actions: Sequence[Action], frames: npt.NDArray[np.int64]) -> None:
    """Note in place what actions of one kind say of one frame each; the last one of a frame counts."""
    starts = np.array([action.start for action in actions])
    at = np.searchsorted(frames, starts).clip(max=len(frames) - 1)
    known = np.flatnonzero(frames[at] == starts)
    at = at[known]
    marks.state[at] = _CODES[actions[0].kind]
    boxes = np.array([action.box or [np.nan] * 4 for action in actions])
    marks.box[at] = boxes[known]
    marks.kept[at] = marks.loose[at] = False
    for position in at.tolist():
        marks.accepted_tag[position] = ""


def _forget_classes(marks: Marks) -> None:
    """Forget in place what was said of the class of frames where the object is that of the model."""
    for at in np.flatnonzero(marks.main).tolist():
        marks.tag[at] = marks.accepted_tag[at] = ""


def _apply(marks: Marks, action: Action, first: int, last: int) -> None:
    """Note in place what an action says of the frames ``first`` to ``last`` − 1, by their positions."""
    state, box, tag, kept, accepted_tag, main, base, loose = marks
    rows, count = slice(first, last), last - first
    stated = action.boxes if action.boxes is not None and len(action.boxes) == count else None
    if action.kind in {"class", "add"}:
        tag[rows] = [action.tag or ""] * count
        if stated is not None:
            base[rows] = np.array([corners or [np.nan] * 4 for corners in stated])
        return
    if action.kind == "accepted":  # what is shown is right, so a drawn box stays
        for at in (first + np.flatnonzero(~np.isin(state[rows], CHECKED))).tolist():
            state[at], accepted_tag[at], box[at], loose[at] = ACCEPTED, action.tag or "", np.nan, False
            if stated is not None:
                kept[at], box[at] = True, stated[at - first] or np.nan
        return
    if action.kind == "follow":
        if stated is not None:
            unmarked = ~np.isin(state[rows], CHECKED)
            state[rows][unmarked], box[rows][unmarked] = FOLLOWS, np.array(stated, float).reshape(-1, 4)[unmarked]
            loose[rows][unmarked] = False
        return
    state[rows] = _CODES.get(action.kind, PREDICTED)
    box[rows] = action.box if action.box is not None else np.nan
    kept[rows] = loose[rows] = False
    accepted_tag[rows] = [""] * count
    if action.kind == "clear":
        # Nobody but people gives other objects a class.
        tag[rows] = ["" if of_model else name for of_model, name in zip(main[rows].tolist(), tag[rows], strict=True)]


def _move(source: Marks, target: Marks, first: int, last: int) -> None:
    """Move frames of an object to another one.

    Where both are marked, the target stays, unless it says "none" or nobody has checked it.
    """
    rows = slice(first, last)
    mine, its = source.state[rows], target.state[rows]
    taken = (its == PREDICTED) & (mine != PREDICTED)
    taken |= np.isin(its, (NONE, *INTERPOLATED)) & np.isin(mine, (ACCEPTED, BOX))
    taken |= (its == FOLLOWS_NONE) & (mine == FOLLOWS)
    for name in ("state", "box", "kept", "loose"):
        getattr(target, name)[rows][taken] = getattr(source, name)[rows][taken]
    for at in range(first, last):
        if taken[at - first]:
            target.accepted_tag[at] = source.accepted_tag[at]
        target.tag[at] = (taken[at - first] and source.tag[at]) or target.tag[at] or source.tag[at]
    target.main[rows] |= source.main[rows]
    lacking = np.isnan(target.base[rows, 0])
    target.base[rows][lacking] = source.base[rows][lacking]
    columns: tuple[Any, ...] = source
    for column, blank in zip(columns, _unmarked(last - first, main=False), strict=True):
        column[rows] = blank


def frame_states(objects: Iterable[Marks]) -> npt.NDArray[np.uint8]:
    """(N,) what is known of whole frames: of the states of the objects in a frame, the one that is least sure."""
    listed = list(objects)
    states = np.full(len(listed[0].state), BOX, np.uint8)
    sureness = np.zeros(ASKED + 1, np.uint8)
    sureness[list(_BY_SURENESS)] = np.arange(len(_BY_SURENESS))
    known = np.zeros(len(states), bool)
    for marks in listed:
        counted = marks.counted
        states = np.where(counted & (~known | (sureness[marks.state] < sureness[states])), marks.state, states)
        known |= counted
    return states


def _settle(
    marks: Marks, frames: npt.NDArray[np.int64], cuts: npt.NDArray[np.bool_], absent: npt.NDArray[np.bool_]
) -> None:
    """Keep in place what follows from marked frames, before a move parts them or puts others between them."""
    stated = (marks.state == FOLLOWS) & ~marks.loose
    _follow(marks, frames, cuts, absent)
    marks.state[marks.state == ASKED] = FOLLOWS
    marks.loose[:] = np.isin(marks.state, INTERPOLATED) & ~stated


def _follow(
    marks: Marks, frames: npt.NDArray[np.int64], cuts: npt.NDArray[np.bool_], absent: npt.NDArray[np.bool_]
) -> None:
    """Fill the frames between two marked ones in place; boxes that were carried on to frames stay there."""
    state, box, shot = marks.state, marks.box, np.cumsum(cuts)
    has_prediction = marks.main | ~np.isnan(marks.base[:, 0])
    marked = np.flatnonzero(np.isin(state, CHECKED))
    for a, b in zip(marked[:-1].tolist(), marked[1:].tolist(), strict=True):
        if b - a < 2 or shot[a] != shot[b] or state[a] != state[b] or state[a] == ACCEPTED:
            continue
        between = a + 1 + np.flatnonzero((state[a + 1 : b] == PREDICTED) | marks.loose[a + 1 : b])
        state[between], box[between] = PREDICTED, np.nan
        if state[a] == NONE:
            state[between] = FOLLOWS_NONE
            continue
        if absent[a + 1 : b].any():  # it may have left and come back: the prediction stays, where there is one
            between = between[absent[between] | ~has_prediction[between]]
        share = ((frames[between] - frames[a]) / (frames[b] - frames[a]))[:, None]
        state[between] = FOLLOWS
        box[between] = box[a] + share * (box[b] - box[a])
    state[(state == FOLLOWS) & absent] = ASKED
