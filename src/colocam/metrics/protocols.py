"""CorLoc (share of frames whose box is right) under four ways to choose the threshold τ.

| protocol           | τ                                                                         |
|--------------------|---------------------------------------------------------------------------|
| `oracle-per-class` | for each class the best on the evaluated frames (the published figures)   |
| `oracle-global`    | one, the best over the evaluated frames (MaxBoxAcc)                       |
| `validation`       | one, the best mean over classes on validation frames with boxes           |
| `tags-only`        | one, given: chosen from tags and maps without any box                     |

Intervals hold τ fixed: they say how the number would vary with other test videos at this threshold, not how the
choice of the threshold would.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.metrics.bootstrap import Frames, percent_interval, resampled_means

PROTOCOLS = ("oracle-per-class", "oracle-global", "validation", "tags-only")
RESERVED = frozenset({"average", "frames", "interval", "threshold", "top1", "top5"})
"""Keys of a result beside the names of the classes: no tag may be called so."""
Hits = npt.NDArray[np.bool_]
Result = dict[str, Any]


def corloc(
    hits: Hits,
    frames: Frames,
    thresholds: Sequence[float] | npt.NDArray[np.floating],
    *,
    tags_only: float,
    classified: Mapping[str, Hits],
    validation: tuple[Hits, Frames] | None = None,
    seed: int = 0,
) -> dict[str, Result]:
    """CorLoc of one method under the four protocols, in percent.

    Args:
        hits: (N, T) is the box of frame i right at threshold t, as ``box_hits`` has it.
        frames: tags and videos of the evaluated frames.
        thresholds: (T,) the grid.
        tags_only: τ chosen without boxes; the nearest of the grid counts, so put τ itself in the grid to be exact.
        classified: (N,) each, e.g. ``{"top1": …, "top5": …}``: is the class right? Under these keys the result has
            localisation with class *and* box right.
        validation: hits (M, T) on the same grid and frames of the validation split, where it has boxes.
        seed: of the bootstrap.

    Returns:
        for each protocol (without ``validation`` if that is None): ``average`` (mean over classes), each class by its
        name (None without frames), ``frames`` (mean over frames), ``interval`` of the average (95 %), ``threshold``
        (one per class for `oracle-per-class`), and for each key of ``classified`` its ``average`` and ``interval``.
    """
    grid = np.asarray(thresholds, np.float64)
    _check(hits, frames, grid, classified)
    means = frames.class_means(hits)
    present = ~np.isnan(means[:, 0])
    per_class = np.zeros(len(frames.names), np.int64)
    per_class[present] = [_best(of_class, grid) for of_class in means[present]]
    chosen = {
        "oracle-per-class": per_class,
        "oracle-global": np.full_like(per_class, _best(hits.mean(0), grid)),
        "tags-only": np.full_like(per_class, np.argmin(abs(grid - tags_only))),
    }
    if validation is not None:
        chosen["validation"] = np.full_like(per_class, np.argmin(abs(grid - best_threshold(*validation, grid))))
    results = {}
    for protocol in (name for name in PROTOCOLS if name in chosen):
        at = chosen[protocol]
        right = hits[np.arange(len(hits)), at[frames.tags]]
        each = protocol == "oracle-per-class"
        results[protocol] = {
            **_summary(right, frames, seed),
            "threshold": {frames.names[c]: float(grid[at[c]]) for c in np.flatnonzero(present)}
            if each
            else float(grid[at[0]]),
            **{key: _average(right & correct, frames, seed) for key, correct in classified.items()},
        }
    return results


def best_threshold(hits: Hits, frames: Frames, thresholds: npt.NDArray[np.floating]) -> float:
    """τ with the best mean over classes; the middle one of several equally good, which is safest on other frames."""
    return float(thresholds[_best(np.nanmean(frames.class_means(hits), axis=0), thresholds)])


def accuracy(correct: Hits, frames: Frames, *, seed: int = 0) -> Result:
    """Share of right frames in percent: ``accuracy`` over frames with its ``interval``, and ``per_class`` by name."""
    _, resampled = resampled_means(correct, frames, seed=seed)
    return {
        "accuracy": 100 * float(correct.mean()),
        "interval": percent_interval(resampled),
        "per_class": _per_class(correct, frames),
    }


def _best(scores: npt.NDArray[np.float64], grid: npt.NDArray[np.floating]) -> int:
    order = np.argsort(grid, kind="stable")
    best = order[scores[order] >= scores.max() - 1e-12]
    return int(best[(len(best) - 1) // 2])


def _summary(right: Hits, frames: Frames, seed: int) -> Result:
    average = _average(right, frames, seed)
    return {
        "average": average["average"],
        **_per_class(right, frames),
        "frames": 100 * float(right.mean()),
        "interval": average["interval"],
    }


def _average(right: Hits, frames: Frames, seed: int) -> Result:
    resampled, _ = resampled_means(right, frames, seed=seed)
    return {
        "average": 100 * float(np.nanmean(frames.class_means(right))),
        "interval": percent_interval(resampled),
    }


def _per_class(right: Hits, frames: Frames) -> dict[str, float | None]:
    means = frames.class_means(right)
    return {n: None if np.isnan(mean) else 100 * float(mean) for n, mean in zip(frames.names, means, strict=True)}


def _check(hits: Hits, frames: Frames, grid: npt.NDArray[np.floating], classified: Mapping[str, Hits]) -> None:
    if not len(frames.tags):
        raise ColocamError("no frame with a true box to evaluate on")
    if hits.shape != (len(frames.tags), len(grid)):
        raise ColocamError(f"hits of shape {hits.shape} for {len(frames.tags)} frames and {len(grid)} thresholds")
    taken = {"average", "frames", "interval", "threshold", *classified} & set(frames.names)
    if taken:
        raise ColocamError(f"the tag {min(taken)!r} has a meaning of its own in the results: rename the tag")
