"""Confidence intervals of frame means: class-stratified bootstrap over videos.

Frames of one video are alike, so whole videos are resampled, with replacement, within each class; every sample has as
many videos of each class as the data. A class with a single video adds no spread: then the interval is too narrow.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.metrics.scores import Interval

Values = npt.NDArray[np.floating] | npt.NDArray[np.bool_]


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

    def __post_init__(self) -> None:
        if len(self.tags) != len(self.videos):
            counts = f"{len(self.tags)} and {len(self.videos)}"
            raise ColocamError(f"tags and videos must have one entry per frame, got {counts}")
        if len(self.tags) and not (self.tags.min() >= 0 and self.tags.max() < len(self.names)):
            raise ColocamError(f"tags must be indices in 0–{len(self.names) - 1}")

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
