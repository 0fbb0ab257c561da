"""How a :class:`Localizer` works: what a caller may ask for."""

from typing import TypedDict

from colocam.temporal.smoothing import OFFLINE, ONLINE, LookAhead

SMOOTH: dict[str, LookAhead | None] = {"offline": OFFLINE, "online": ONLINE, "none": None}


class Options(TypedDict, total=False):
    """How a :class:`Localizer` works.

    Attributes:
        batch: frames that the model sees at once; without it what suits the device, and 1 for a camera.
        masks: also give outlines.
        smooth: ``offline`` (the default) makes boxes steady with some frames of look-ahead, ``online`` with none;
            ``none`` gives the box of each frame by itself.
        tag: what the video is known to show; without it, what the classifier sees in it.
        presence: give no box where the probability of presence is below this; by default all boxes are given.
        threshold: τ relative to each map's maximum, 0–1; by default the one stored with the model.
        instances: give every blob above the threshold for itself, a localization per object, one without a box for
            frames without any.
        color_mean: whose colours complete a map, ``off``, ``frame`` or ``clip``; by default as the model was trained.
            ``clip`` looks at the frames of a batch that belong to one shot, so it needs ``smooth="offline"``; else it
            is ``frame``.
        focus: draw maps towards the ``tag``, or what the classifier sees in the shot; by default as the model was
            trained.
    """

    batch: int | None
    masks: bool
    smooth: str
    tag: str | None
    presence: float | None
    threshold: float | None
    instances: bool
    color_mean: str | None
    focus: bool | None
