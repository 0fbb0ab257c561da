"""An evaluation as rows for the page: protocols, methods, classes, each number with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from colocam.evaluation.result import Evaluation
from colocam.evaluation.titles import method_title, ordered_methods, refined_title
from colocam.metrics import PROTOCOLS, Accuracy, Average, CorLoc


@dataclass(frozen=True, slots=True)
class Estimate:
    """A percentage and its 95 % interval; None where it was not measured."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def spread(self) -> str:
        """The interval as text, "" without one."""
        return "" if self.low is None or self.high is None else f"{self.low:.1f}–{self.high:.1f}"

    def __str__(self) -> str:
        return "–" if self.value is None else f"{self.value:.1f}"


@dataclass(frozen=True, slots=True)
class Result:
    """One method under one protocol."""

    method: str
    title: str
    corloc: Estimate
    frames: Estimate
    top1: Estimate
    threshold: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """All methods under one protocol, with their classes: ``classes`` holds (tag, one value per method, gain)."""

    name: str
    meaning: str
    results: tuple[Result, ...]
    classes: tuple[tuple[str, tuple[Estimate, ...], float | None], ...]


def protocols_of(evaluation: Evaluation) -> list[Protocol]:
    """All results, grouped by protocol."""
    protocols = []
    for name, meaning in PROTOCOLS.items():
        cells = {
            method: evaluation.methods[method][name]
            for method in ordered_methods(evaluation.methods)
            if name in evaluation.methods[method]
        }
        if cells:
            results = tuple(_result(method, cell) for method, cell in cells.items())
            protocols.append(Protocol(name, meaning, results, _classes(list(cells.values()))))
    return protocols


def instance_rows(evaluation: Evaluation) -> list[tuple[str, str, list[str]]]:
    """Frames with several true boxes: title of the method, way, recall at each IoU, their mean, precision."""
    methods = evaluation.instances.methods if evaluation.instances else {}
    rows = []
    for method in ordered_methods(methods):
        for way, scores in methods[method].items():
            recalls = [scores.recall.get(key) for key in ("0.3", "0.5", "0.7", "mean")]
            precision = scores.precision["mean"] if scores.precision else None
            rows.append((method_title(method), way, [str(Estimate(value)) for value in (*recalls, precision)]))
    return rows


def refined_rows(evaluation: Evaluation) -> list[Result]:
    """Methods whose boxes a segmenter refined; no protocol, since there is no threshold to choose."""
    return [
        replace(_result(method, cell), title=refined_title(method, segmenter))
        for segmenter, methods in (evaluation.refined or {}).items()
        for method, cell in methods.items()
    ]


def gain(results: Sequence[Result]) -> float | None:
    """Points by which the last method is above the first; None for a single method."""
    return _difference([result.corloc for result in results])


def estimate(value: CorLoc | Average | Accuracy | None) -> Estimate:
    """The main number of a score with its interval; empty where there is none."""
    if value is None:
        return Estimate(None)
    return Estimate(value.accuracy if isinstance(value, Accuracy) else value.average, *(value.interval or ()))


def _result(method: str, cell: CorLoc) -> Result:
    return Result(
        method=method,
        title=method_title(method),
        corloc=estimate(cell),
        frames=Estimate(cell.frames),
        top1=estimate(cell.top1),
        threshold=_threshold(cell.threshold),
    )


def _classes(cells: Sequence[CorLoc]) -> tuple[tuple[str, tuple[Estimate, ...], float | None], ...]:
    """Per tag: the value of each method and the gain of the last over the first."""
    rows = []
    for tag in dict.fromkeys(tag for cell in cells for tag in cell.classes):
        values = tuple(Estimate(cell.classes.get(tag)) for cell in cells)
        rows.append((tag, values, _difference(values)))
    return tuple(rows)


def _difference(values: Sequence[Estimate]) -> float | None:
    """Last minus first; None for a single value or where either is missing."""
    if len(values) < 2 or values[0].value is None or values[-1].value is None:
        return None
    return values[-1].value - values[0].value


def _threshold(value: float | Mapping[str, float] | None) -> str:
    """One threshold, or the range of those of the classes."""
    if isinstance(value, Mapping):
        return f"{min(value.values()):.2f}–{max(value.values()):.2f}" if value else "–"
    return "–" if value is None else f"{value:.2f}"
