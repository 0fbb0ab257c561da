"""``evaluation.json`` as rows for the page: methods, protocols, classes, each number with its interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from colocam.cams import CAMS
from colocam.config import METHODS
from colocam.metrics import RESERVED

PROTOCOLS = {
    "tags-only": "No box anywhere: the epoch and the threshold are chosen from tags and from the maps themselves.",
    "validation": "One threshold, chosen on validation videos that have boxes; the test videos are not looked at.",
    "oracle-global": "One threshold, the best on the test boxes themselves: an upper bound, used in the literature.",
    "oracle-per-class": "The best threshold on the test boxes for each class: the published figures use this bound.",
}
"""What each protocol may look at, in one line; the honest ones first."""

Evaluation = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A percentage and its bootstrap interval; None where it was not measured."""

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


def method_title(method: str) -> str:
    """Title of a CAM, a trained method or a training phase, as the literature writes it."""
    entry = CAMS.get(method) or METHODS.get(method)
    return entry.title if entry else {"classifier": "Classifier"}.get(method, method)


def ordered_methods(methods: Sequence[str]) -> list[str]:
    """CAMs in the given order, then trained methods in the order of ``METHODS``, then unknown names, CoLo-CAM last."""
    rank = {name: index for index, name in enumerate(METHODS)} | dict.fromkeys(CAMS, -1) | {"colocam": len(METHODS) + 1}
    return sorted(methods, key=lambda name: (rank.get(name, len(METHODS)), "" if name in CAMS else name))


def methods_of(evaluation: Evaluation) -> list[str]:
    """Keys of ``evaluation`` that hold results of a method."""
    return ordered_methods(
        [key for key, value in evaluation.items() if isinstance(value, Mapping) and PROTOCOLS.keys() & value.keys()]
    )


def protocols_of(evaluation: Evaluation) -> list[Protocol]:
    """All results, grouped by protocol."""
    methods = methods_of(evaluation)
    protocols = []
    for name, meaning in PROTOCOLS.items():
        cells = {method: evaluation[method][name] for method in methods if name in evaluation[method]}
        if cells:
            results = tuple(_result(method, cell) for method, cell in cells.items())
            protocols.append(Protocol(name, meaning, results, _classes(cells)))
    return protocols


def instance_rows(evaluation: Evaluation) -> list[tuple[str, str, list[str]]]:
    """Frames with several true boxes: title of the method, way, recall at each IoU, their mean, precision."""
    instances = evaluation.get("instances")
    methods = instances["methods"] if isinstance(instances, Mapping) else {}
    keys = ("0.3", "0.5", "0.7", "mean")
    return [
        (
            method_title(method),
            way,
            [str(estimate(cell["recall"], key)) for key in keys] + [str(estimate(cell["precision"], "mean"))],
        )
        for method in ordered_methods(list(methods))
        for way, cell in methods[method].items()
    ]


def gain(results: Sequence[Result]) -> float | None:
    """Points that the last method is above the first; None where either is missing."""
    if len(results) < 2:
        return None
    first, last = results[0].corloc.value, results[-1].corloc.value
    return None if first is None or last is None else last - first


def estimate(cell: object, key: str = "average") -> Estimate:
    """The number under ``key`` of ``cell`` with the cell's interval; empty where there is none."""
    if not isinstance(cell, Mapping):
        return Estimate(_number(cell))
    interval = cell.get("interval")
    low, high = interval if isinstance(interval, Sequence) and len(interval) == 2 else (None, None)
    return Estimate(_number(cell.get(key)), _number(low), _number(high))


def _result(method: str, cell: Mapping[str, Any]) -> Result:
    return Result(
        method=method,
        title=method_title(method),
        corloc=estimate(cell),
        frames=Estimate(_number(cell.get("frames"))),
        top1=estimate(cell.get("top1")),
        threshold=_threshold(cell.get("threshold")),
    )


def _classes(cells: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, tuple[Estimate, ...], float | None], ...]:
    """Per tag, in the order of the file: the value of each method and the gain of the last over the first."""
    tags = dict.fromkeys(tag for cell in cells.values() for tag in cell if tag not in RESERVED)
    rows = []
    for tag in tags:
        values = tuple(Estimate(_number(cell.get(tag))) for cell in cells.values())
        first, last = values[0].value, values[-1].value
        rows.append((tag, values, last - first if len(values) > 1 and None not in (first, last) else None))  # type: ignore[operator]
    return tuple(rows)


def _threshold(value: object) -> str:
    """One threshold, or the range of those of the classes."""
    if isinstance(value, Mapping):
        each = [number for one in value.values() if (number := _number(one)) is not None]
        return f"{min(each):.2f}–{max(each):.2f}" if each else "–"
    number = _number(value)
    return "–" if number is None else f"{number:.2f}"


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value from JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: object) -> float | None:
    """A finite number, or None."""
    return float(value) if is_number(value) else None
