"""A correction: what a person says about one frame of a video."""

from dataclasses import dataclass
from typing import Literal, get_args

from colocam.types import Box

Kind = Literal["box", "none", "accepted", "class"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""box: the boxes were drawn or changed; none: the frame shows no object; accepted: the prediction is right, with or
without a box; class: the class was changed."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person says about one frame.

    Attributes:
        video: name of the video: that of its localisation table, or of its clip in a run.
        frame: index of the frame in the video, from 0.
        pts: presentation time in seconds; None: unknown.
        kind: what was done, see :data:`KINDS`.
        tag: class of the objects; "" where it is not known, which only ``none`` and ``accepted`` without a box allow.
        boxes: all boxes of this class in the frame, in pixels of the original video; none where it shows no object.
        key: the person set or checked this very frame; False: it lies between such frames, so the box is interpolated,
            or it equals the prediction and may not have been looked at.
        origin: where it comes from: the name of a label format, or ``page``.
        path: file or folder of the video; "": unknown.
        content: id of the video's content, as ``colocam serve`` knows it; "": unknown.
    """

    video: str
    frame: int
    pts: float | None
    kind: Kind
    tag: str
    boxes: tuple[Box, ...]
    key: bool = True
    origin: str = ""
    path: str = ""
    content: str = ""
