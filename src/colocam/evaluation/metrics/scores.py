"""The numbers of an evaluation as values: CorLoc, classification accuracy, recall of several objects.

All numbers are percentages unless their name says otherwise. Values per class live under ``classes``, so that a tag may
have any name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Interval = tuple[float, float]
"""Lower and upper bound of a 95 % confidence interval."""
Shares = Mapping[str, float]
"""Share by least IoU, "0.3", "0.5" and "0.7", and their "mean"."""
Values = npt.NDArray[np.floating] | npt.NDArray[np.bool_]


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

    @property
    def average(self) -> float:
        """The main number, under the name that it has in other scores."""
        return self.accuracy


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


@dataclass(frozen=True, slots=True)
class Frames:
    """Tags and videos of the evaluated frames.

    Attributes:
        names: the tags, in the order of the model's classes.
        tags: (N,) index of each frame's tag in ``names``.
        videos: (N,) name or index of the video that each frame belongs to.
    """

    names: tuple[str, ...]
    tags: npt.NDArray[np.int64]
    videos: npt.NDArray[np.generic]

    def class_means(self, values: Values) -> npt.NDArray[np.float64]:
        """Mean of ``values`` (N, ...) over the frames of each class, (C, ...); nan for a class without frames."""
        means = np.full((len(self.names), *values.shape[1:]), np.nan)
        for tag in np.unique(self.tags):
            means[tag] = values[self.tags == tag].mean(0)
        return means


def resampled_means(
    values: Values, frames: Frames, *, samples: int = 1000, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means of ``values`` (N,) in bootstrap samples of videos.

    Returns:
        (samples,) mean over classes of the mean over a class's frames; (samples,) mean over all frames.
    """
    generator = np.random.default_rng(seed)
    classes, totals, counts = [], np.zeros(samples), np.zeros(samples)
    for tag in np.unique(frames.tags):
        of_class = frames.tags == tag
        _, video = np.unique(frames.videos[of_class], return_inverse=True)
        size = np.bincount(video).astype(np.float64)
        total = np.bincount(video, weights=values[of_class].astype(np.float64))
        sampled = generator.multinomial(len(size), np.full(len(size), 1 / len(size)), samples)
        classes.append((sampled @ total) / (sampled @ size))
        totals += sampled @ total
        counts += sampled @ size
    return np.mean(classes, axis=0), totals / counts


def percent_interval(samples: npt.NDArray[np.float64]) -> Interval:
    """The middle 95 % of ``samples``, in percent."""
    lower, upper = np.quantile(samples, [0.025, 0.975])
    return 100 * float(lower), 100 * float(upper)
