"""Options of a :class:`Localizer`."""

from dataclasses import dataclass, fields
from typing import Literal, TypedDict, Unpack, get_args

from colocam.boxes.candidates import find_chooser
from colocam.config import COLOR_MEANS, ColorMean
from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.temporal.smoothing import OFFLINE, ONLINE, LookAhead

Smooth = Literal["offline", "online", "none"]
LOOK_AHEAD: dict[Smooth, LookAhead | None] = {"offline": OFFLINE, "online": ONLINE, "none": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a :class:`Localizer` works.

    Attributes:
        batch: at most so many new frames in one pass of the network; None: as many as a pass has rows. Boxes do not
            depend on it: a pass always computes all its rows. Fewer frames give results earlier, at a higher cost.
        masks: also give the object's outline.
        smooth: ``offline`` smooths boxes over time and looks some frames ahead, ``online`` looks at past frames only,
            ``none`` gives the box of each frame by itself.
        tag: class that the video shows; None: the class that the classifier finds in it.
        presence: give no box where the probability of presence is below this value, 0–1; None: give all boxes.
        threshold: τ relative to the maximum of each map, 0–1; None: the threshold stored with the model.
        instances: give a box for every blob above the threshold, one localization per object; with a segmenter, for
            every mask that the map supports.
        color_mean: ``off``, ``frame`` or ``clip``; None: as the model was trained. ``clip`` shares colors within a
            window (:mod:`colocam.temporal.cuts`); this needs look-ahead, so ``smooth`` other than ``offline`` makes it
            ``frame``.
        chooser: name in :data:`colocam.boxes.CHOOSERS`, which contour of a map is the object; None: that of the model.
        focus: restrict maps to the class ``tag``, or to the class found in the window; None: as the model was trained.
        motion: weigh maps by what moves otherwise than the camera (:mod:`colocam.temporal.motion`) before boxes are
            read from them. None: where the frames of a shot choose one box together, that is with smoothing and a
            chooser other than ``largest``, without ``instances``.
    """

    batch: int | None = None
    masks: bool = False
    smooth: Smooth = "offline"
    tag: str | None = None
    presence: float | None = None
    threshold: float | None = None
    instances: bool = False
    color_mean: ColorMean | None = None
    focus: bool | None = None
    motion: bool | None = None
    chooser: str | None = None

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise ArgumentError("batch", f"must be 1 or more frames, got {self.batch}")
        if self.presence is not None and not 0 <= self.presence <= 1:
            raise ArgumentError("presence", f"must be in 0–1, got {self.presence}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ArgumentError("threshold", f"must be in 0–1, got {self.threshold}")
        if self.smooth not in LOOK_AHEAD:
            raise ArgumentError("smooth", f"{self.smooth}{suggest(self.smooth, get_args(Smooth))}")
        if self.motion and self.smooth == "none":
            raise ArgumentError("motion", "compares frames: it needs smooth offline or online, got none")
        if self.chooser is not None:
            find_chooser(self.chooser)
        if self.color_mean is not None and self.color_mean not in COLOR_MEANS:
            raise ArgumentError("color_mean", f"{self.color_mean}{suggest(self.color_mean, COLOR_MEANS)}")


class OptionKeywords(TypedDict, total=False):
    """The fields of :class:`Options` as keywords, for type checkers and completion."""

    batch: int | None
    masks: bool
    smooth: Smooth
    tag: str | None
    presence: float | None
    threshold: float | None
    instances: bool
    color_mean: ColorMean | None
    focus: bool | None
    motion: bool | None
    chooser: str | None


def make_options(**options: Unpack[OptionKeywords]) -> Options:
    """Options from keywords; an unknown keyword is refused with the nearest name."""
    names = [field.name for field in fields(Options)]
    for name in options:
        if name not in names:
            raise ColocamError(f"unknown option {name}{suggest(name, names)}")
    return Options(**options)
