"""The numbers of an evaluation as values: CorLoc, classification accuracy, recall of several objects.

All numbers are percentages unless their name says otherwise. Values per class live under ``classes``, so that a tag may
have any name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Interval = tuple[float, float]
"""Lower and upper bound of a 95 % confidence interval."""


@dataclass(frozen=True, slots=True)
class Average:
    """A mean over classes with its interval."""

    average: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class CorLoc:
    """Share of frames whose box is right, of one method under one protocol.

    Attributes:
        average: mean over the classes that have frames.
        interval: of the average.
        frames: mean over all frames.
        classes: tag → share of its frames; None for a tag without frames.
        threshold: τ; one per tag under ``oracle-per-class``; None where boxes were given and nothing was chosen.
        top1: class and box right.
        top5: class among the five most probable, and box right.
    """

    average: float
    interval: Interval | None = None
    frames: float | None = None
    classes: Mapping[str, float | None] = field(default_factory=dict)
    threshold: float | Mapping[str, float] | None = None
    top1: Average | None = None
    top5: Average | None = None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of frames that are classified correctly.

    Attributes:
        accuracy: mean over frames.
        interval: of the accuracy.
        classes: tag → share of its frames; None for a tag without frames.
    """

    accuracy: float
    interval: Interval | None = None
    classes: Mapping[str, float | None] = field(default_factory=dict)


Shares = Mapping[str, float]
"""Share by least IoU, "0.3", "0.5" and "0.7", and their "mean"."""


@dataclass(frozen=True, slots=True)
class InstanceScores:
    """How many of the true boxes are found, each by a predicted box of its own.

    Attributes:
        recall: share of the true boxes that are found.
        precision: share of the predicted boxes that find one; None without predicted boxes.
        threshold: τ of the maps; None where boxes were given.
    """

    recall: Shares
    precision: Shares | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Instances:
    """Scores on the frames with several true boxes.

    Attributes:
        frames: number of these frames.
        boxes: number of true boxes in them.
        methods: method → way of choosing boxes → scores.
    """

    frames: int
    boxes: int
    methods: Mapping[str, Mapping[str, InstanceScores]]
