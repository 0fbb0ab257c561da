"""What a person does to the frames of a film, as the page sends it and as it is stored."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_FRAMES = 1 << 32
FrameIndex = Annotated[int, Field(ge=0, le=MOST_FRAMES)]
Coordinate = Annotated[float, Field(ge=-1, le=1 << 16, allow_inf_nan=False)]
Corners = Annotated[list[Coordinate], Field(min_length=4, max_length=4)]
_STRICT = ConfigDict(strict=True, extra="forbid")


class Action(BaseModel):
    """One statement about the frames ``start`` to ``stop`` − 1.

    Attributes:
        kind: box: the object is in ``box``; none: no object; accepted: what is shown is right; class: the class is
            ``tag``; clear: back to the prediction.
        start: index of the first frame.
        stop: index after the last frame.
        box: x1, y1, x2, y2 in pixels of the film, for ``box``.
        tag: class, for ``class``; for ``accepted`` the class that was shown.
        boxes: for ``accepted``: the box that was shown in each frame of the film from ``start``, None where there was
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


class History(NamedTuple):
    """Edits that count, in order, and edits that were undone, the last one first to be redone."""

    done: list[Change]
    undone: list[Change]

    @property
    def actions(self) -> list[Action]:
        """All actions that count, in order."""
        return [action for change in self.done for action in change.actions]


def history_of(changes: Iterable[Change]) -> History:
    """Replay the stored changes of a film."""
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
