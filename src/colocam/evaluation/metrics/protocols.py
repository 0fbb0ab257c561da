"""CorLoc, the share of frames whose box is right, under four ways to choose the threshold τ.

| protocol           | τ                                                                         |
|--------------------|---------------------------------------------------------------------------|
| `tags-only`        | one, given: chosen from tags and maps without any box                     |
| `validation`       | one, the best mean over classes on validation frames with boxes           |
| `oracle-global`    | one, the best over the evaluated frames (MaxBoxAcc)                       |
| `oracle-per-class` | for each class the best on the evaluated frames (the published figures)   |

All numbers are percentages unless their name says otherwise. Values per class live under ``classes``, so that a tag may
have any name. Intervals hold τ fixed: they describe how the number varies with other test videos at this threshold, not
how the choice of the threshold varies.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import Numbers
from colocam.evaluation.metrics.hits import RIGHT, frame_overlaps
from colocam.temporal.path import boxes_of_shots
from colocam.types import Levels

PROTOCOLS = {
    "tags-only": "No box is used: tags and the maps themselves choose the epoch and the threshold.",
    "validation": "One threshold, chosen on validation videos that have boxes; the test boxes are not used.",
    "oracle-global": "One threshold, the best on the test boxes themselves: an upper bound, used in the literature.",
    "oracle-per-class": "The best threshold on the test boxes for each class: the upper bound used in the paper.",
}
"""Name → what may choose the threshold; the protocol that uses the least comes first."""
PUBLISHED_PROTOCOL = "oracle-per-class"
"""The protocol of the paper's figures."""

Hits = npt.NDArray[np.bool_]
GRID: npt.NDArray[np.float64] = np.geomspace(0.08, 0.5, 13)
"""Thresholds tried for a chooser: few, since each takes a pass over all contours, and neighbors differ little."""
Interval = tuple[float, float]
"""Lower and upper bound of a 95 % confidence interval."""
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
    classes = []
    totals = np.zeros(samples)
    counts = np.zeros(samples)
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


def corloc(
    hits: Hits,
    frames: Frames,
    thresholds: Sequence[float] | npt.NDArray[np.floating],
    *,
    tags_only: float | Sequence[float],
    top1: Hits | None = None,
    top5: Hits | None = None,
    validation: tuple[Hits, Frames] | float | None = None,
    chosen: Callable[[float], Hits] | None = None,
) -> dict[str, CorLoc]:
    """CorLoc of one method under each protocol.

    Args:
        hits: (N, T) whether the box of frame i is right at threshold t, as ``box_hits`` returns it.
        frames: tags and videos of the evaluated frames.
        thresholds: (T,) the grid.
        tags_only: the model's own τ, chosen without test boxes, or one τ for each class; the nearest of the grid
            counts, so add τ itself to the grid to be exact.
        top1: (N,) whether the class is right; None where it is not known.
        top5: (N,) whether the class is among the five most probable.
        validation: hits (M, T) on the same grid and frames of the validation split, where it has boxes; or τ itself,
            a value of the grid.
        chosen: τ → (N,) whether the box that the method's chooser takes is right, for ``tags-only`` and
            ``validation``, which give what a user gets; None: ``hits``. The oracles always read ``hits``, the rule of
            the published figures.

    Returns:
        protocol → result, without ``validation`` if that argument is None.
    """
    grid = np.asarray(thresholds, np.float64)
    means = frames.class_means(hits)
    present = ~np.isnan(means[:, 0])
    per_class = np.zeros(len(frames.names), np.int64)
    per_class[present] = [_best(of_class, grid) for of_class in means[present]]
    at_protocol = {
        "tags-only": np.abs(grid - np.asarray(tags_only, np.float64).reshape(-1, 1)).argmin(1) + 0 * per_class,
        "oracle-global": np.full_like(per_class, _best(hits.mean(0), grid)),
        "oracle-per-class": per_class,
    }
    if validation is not None:
        best = validation if isinstance(validation, float) else best_threshold(*validation, grid)
        at_protocol["validation"] = np.full_like(per_class, np.argmin(abs(grid - best)))
    results = {}
    for protocol in (name for name in PROTOCOLS if name in at_protocol):
        at = at_protocol[protocol]
        right = hits[np.arange(len(hits)), at[frames.tags]]
        if chosen is not None and not protocol.startswith("oracle"):
            right = np.zeros(len(hits), bool)
            for index in np.unique(at).tolist():
                right |= chosen(float(grid[index])) & (at[frames.tags] == index)
        average = _average(right, frames)
        results[protocol] = CorLoc(
            average=average.average,
            interval=average.interval,
            frames=100 * float(right.mean()),
            classes=_per_class(right, frames),
            threshold={frames.names[c]: float(grid[at[c]]) for c in np.flatnonzero(present)}
            if protocol == "oracle-per-class" or len(np.unique(at)) > 1
            else float(grid[at[0]]),
            top1=None if top1 is None else _average(right & top1, frames),
            top5=None if top5 is None else _average(right & top5, frames),
        )
    return results


def best_threshold(hits: Hits, frames: Frames, thresholds: npt.NDArray[np.floating]) -> float:
    """τ with the best mean over classes; of several equally good ones the middle, which is safest on other frames."""
    return float(thresholds[_best(np.nanmean(frames.class_means(hits), axis=0), thresholds)])


def confusion(frames: Frames, predicted: Sequence[str]) -> dict[str, dict[str, int]]:
    """Tag → class that was found → number of frames, both in the order of the classes, without zeros.

    Args:
        frames: N frames.
        predicted: the most probable tag of each.
    """
    counts = Counter(zip(frames.tags.tolist(), predicted, strict=True))
    rows = {
        tag: {name: counts[k, name] for name in frames.names if counts[k, name]} for k, tag in enumerate(frames.names)
    }
    return {tag: row for tag, row in rows.items() if row}


def accuracy(correct: Hits, frames: Frames) -> Accuracy:
    """Share of frames (N,) that are right, over all frames and per class."""
    _, resampled = resampled_means(correct, frames)
    return Accuracy(100 * float(correct.mean()), percent_interval(resampled), _per_class(correct, frames))


def _best(scores: npt.NDArray[np.float64], grid: npt.NDArray[np.floating]) -> int:
    order = np.argsort(grid, kind="stable")
    best = order[scores[order] >= scores.max() - 1e-12]
    return int(best[(len(best) - 1) // 2])


def _average(right: Hits, frames: Frames) -> Average:
    resampled, _ = resampled_means(right, frames)
    return Average(100 * float(np.nanmean(frames.class_means(right))), percent_interval(resampled))


def _per_class(right: Hits, frames: Frames) -> dict[str, float | None]:
    means = frames.class_means(right)
    return {n: None if np.isnan(mean) else 100 * float(mean) for n, mean in zip(frames.names, means, strict=True)}


def chooser_threshold(
    maps: Levels, boxes: Sequence[Numbers], frames: Frames, chooser: str, clips: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """τ of :data:`GRID` with the best CorLoc, mean over classes, and that CorLoc in percent.

    Args:
        maps: (N, S, S) in 8 bits, in order.
        boxes: for each map its true boxes (k, 4), k ≥ 1, in map pixels.
        frames: tags and videos of the frames.
        chooser: name in ``CHOOSERS``.
        clips: (N,) clip of each frame.
    """
    hits = np.stack([hits_of_choice(maps, boxes, float(threshold), chooser, clips) for threshold in GRID], axis=1)
    means = np.nanmean(frames.class_means(hits), axis=0)
    return best_threshold(hits, frames, GRID), 100 * float(means.max())


def hits_of_choice(
    maps: Levels, boxes: Sequence[Numbers], threshold: float, chooser: str, clips: npt.NDArray[np.int64]
) -> Hits:
    """(frames with true boxes,) whether the box that a chooser takes at τ is right; arguments as above, k ≥ 0."""
    overlaps = frame_overlaps(*boxes_of_shots(maps, threshold, chooser, clips), boxes)
    return overlaps[~np.isnan(overlaps)] >= RIGHT
