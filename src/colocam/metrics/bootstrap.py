"""How far a mean over frames might have come out otherwise: bootstrap over videos.

Frames of one video are alike, so whole videos are drawn, with replacement, within each class (every draw has as many
videos of each class as there are). A class with a single video adds no spread: then the interval is too narrow.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

Values = npt.NDArray[np.floating] | npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Frames:
    """What is known of the evaluated frames without looking at them.

    Attributes:
        names: the tags, in the order of the model's classes.
        tags: (N,) index of each frame's tag in ``names``.
        videos: (N,) the video each frame belongs to (any kind of name or number).
    """

    names: tuple[str, ...]
    tags: npt.NDArray[np.int64]
    videos: npt.NDArray[np.generic]

    def __post_init__(self) -> None:
        if len(self.tags) != len(self.videos):
            raise ColocamError(f"{len(self.tags)} tags but {len(self.videos)} video names: give one of each per frame")
        if len(self.tags) and not (self.tags.min() >= 0 and self.tags.max() < len(self.names)):
            raise ColocamError(f"a frame's tag index lies outside 0–{len(self.names) - 1}")

    def class_means(self, values: Values) -> npt.NDArray[np.float64]:
        """Mean of ``values`` (N, ...) over the frames of each class, (C, ...); nan for a class without frames."""
        means = np.full((len(self.names), *values.shape[1:]), np.nan)
        for tag in np.unique(self.tags):
            means[tag] = values[self.tags == tag].mean(0)
        return means


def resampled_means(
    values: Values, frames: Frames, *, draws: int = 1000, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means of ``values`` (N,) in bootstrap draws of videos.

    Returns:
        (draws,) mean over classes of the mean over a class's frames; (draws,) mean over all frames.
    """
    generator = np.random.default_rng(seed)
    classes, totals, counts = [], np.zeros(draws), np.zeros(draws)
    for tag in np.unique(frames.tags):
        of_class = frames.tags == tag
        _, video = np.unique(frames.videos[of_class], return_inverse=True)
        size = np.bincount(video).astype(np.float64)
        total = np.bincount(video, weights=values[of_class].astype(np.float64))
        drawn = generator.multinomial(len(size), np.full(len(size), 1 / len(size)), draws)
        classes.append((drawn @ total) / (drawn @ size))
        totals += drawn @ total
        counts += drawn @ size
    return np.mean(classes, axis=0), totals / counts


def percent_interval(samples: npt.NDArray[np.float64]) -> list[float]:
    """The middle 95 % of ``samples``, in percent: [lower, upper]."""
    lower, upper = np.quantile(samples, [0.025, 0.975])
    return [100 * float(lower), 100 * float(upper)]
