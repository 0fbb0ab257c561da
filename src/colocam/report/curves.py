"""Training curves as inline SVG, one small plot per quantity, in the colours of the page's light or dark palette."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from colocam.evaluation.result import is_number, method_title
from colocam.types import Float64Array

# Size of a plot and of the rectangle of its curves; a unit is about a pixel.
_WIDTH, _HEIGHT = 302.4, 151.2
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.8, 287.3, 6.0, 131.5
_TEXT = "font: 9px sans-serif; fill: var(--soft)"
_Scale = Callable[[Float64Array], Float64Array]

_TITLES = {
    "loss": "Total loss",
    "seeds": "Seeds (partial cross-entropy)",
    "crf": "CRF",
    "size": "Size constraint",
    "coloc": "Colour co-localisation",
    "accuracy": "Validation accuracy, %",
    "corloc": "Validation CorLoc, %",
    "criterion": "Selection criterion",
    "threshold": "Threshold τ",
    "lr": "Learning rate",
}
_PHASES = ("classifier", "fcam", "tcam", "colocam")
_NOT_QUANTITIES = {"phase", "event", "epoch", "step"}
_MAX_POINTS = 400
_MARKED = 40
"""Points of a curve at most that are marked."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one quantity over the steps of a phase: x (N,) increasing steps, y (N,) finite values."""

    event: str
    x: Float64Array
    y: Float64Array

    @property
    def noisy(self) -> bool:
        """Whether the curve is long and changes at most steps, unlike a learning rate, which is not smoothed."""
        return len(self.y) > _MARKED and len(np.unique(self.y)) > len(self.y) // 2


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity: its title, the last value of each event as text, and the plot."""

    title: str
    last: tuple[tuple[str, str], ...]
    svg: Markup


@dataclass(frozen=True, slots=True)
class Phase:
    """All panels of one training phase."""

    title: str
    panels: tuple[Panel, ...]


def training_curves(records: Sequence[Mapping[str, Any]]) -> list[Phase]:
    """Draw every quantity of every phase in ``records``: loss terms, then validation, then the learning rate."""
    names = list(dict.fromkeys(str(record["phase"]) for record in records))
    names.sort(key=lambda name: _PHASES.index(_method(name)) if _method(name) in _PHASES else len(_PHASES))
    phases = []
    for name in names:
        own = [record for record in records if record["phase"] == name]
        panels = tuple(_panel(quantity, curves) for quantity in _quantities(own) if (curves := _curves(own, quantity)))
        if panels:
            phases.append(Phase(method_title(_method(name)) + name.removeprefix(_method(name)), panels))
    return phases


def _method(phase: str) -> str:
    """``colocam`` of ``colocam, round 1``."""
    return phase.partition(",")[0]


def _quantities(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the numbers in ``records``: the known ones in their order, unknown loss terms after the known terms."""
    found = {key for record in records for key in record} - _NOT_QUANTITIES
    known = list(_TITLES)
    unknown_rank = known.index("coloc") + 0.5
    return sorted(found, key=lambda key: (known.index(key) if key in known else unknown_rank, key))


def _curves(records: Sequence[Mapping[str, Any]], quantity: str) -> list[Curve]:
    """Curves of ``quantity``, training before validation; a step repeated after a resume counts once."""
    curves = []
    for event in ("train", "val"):
        points: dict[float, float] = {}
        for record in records:
            value = record.get(quantity)
            x = record.get("step", record.get("epoch"))
            if record["event"] == event and is_number(value) and is_number(x):
                points[float(x)] = float(value) * (100 if quantity == "accuracy" else 1)
        if points:
            x_sorted = sorted(points)
            curves.append(Curve(event, np.array(x_sorted), np.array([points[x] for x in x_sorted])))
    return curves


def _panel(quantity: str, curves: Sequence[Curve]) -> Panel:
    title = _TITLES.get(quantity, quantity)
    last = tuple((curve.event, _short(curve.y[-1])) for curve in curves)
    summary = "; ".join(
        f"{'training' if curve.event == 'train' else 'validation'} from {_short(curve.y[0])} "
        f"to {_short(curve.y[-1])} over {len(curve.x)} points"
        for curve in curves
    )
    return Panel(title, last, _draw(curves, f"{title}: {summary}"))


def _draw(curves: Sequence[Curve], description: str) -> Markup:
    """The curves as SVG: grid and labels of y, a line below with labels of x; spikes end at the frame."""
    low, high = _range(curves)
    first, last = min(curve.x[0] for curve in curves), max(curve.x[-1] for curve in curves)
    margin = 0.02 * (last - first) or 0.05

    def across(x: Float64Array) -> Float64Array:
        return _LEFT + (x - float(first - margin)) / float(last - first + 2 * margin) * (_RIGHT - _LEFT)

    def down(y: Float64Array) -> Float64Array:
        within: Float64Array = np.clip(y, low, high)
        return _BOTTOM + (within - low) / (high - low) * (_TOP - _BOTTOM)

    ticks = _ticks(low, high, 4, (1, 2, 2.5, 5))
    parts = []
    for text, y in zip(_labels(ticks), down(ticks), strict=True):
        parts.append(f'<path d="M{_LEFT} {y:.2f}H{_RIGHT}" style="stroke: var(--line); stroke-width: 0.6"/>')
        parts.append(f'<text x="{_LEFT - 4:.2f}" y="{y + 3.3:.2f}" style="{_TEXT}; text-anchor: end">{text}</text>')
    parts.append(f'<path d="M{_LEFT} {_BOTTOM}H{_RIGHT}" style="stroke: var(--line); stroke-width: 0.8"/>')
    steps = _ticks(first - margin, last + margin, 5, (1, 2, 5), least=1)
    for step, x in zip(steps, across(steps), strict=True):
        text = f"{step / 1000:g}k" if step >= 10_000 else f"{step:g}"
        parts.append(f'<text x="{x:.2f}" y="{_BOTTOM + 11:.2f}" style="{_TEXT}; text-anchor: middle">{text}</text>')
    for curve in curves:
        parts += _lines(curve, across, down)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
    body = "".join(parts)
    return Markup(f'{head} aria-label="{escape(description)}">{body}</svg>')  # noqa: S704 - the rest are numbers


def _lines(curve: Curve, across: _Scale, down: _Scale) -> list[str]:
    """One curve: a noisy one pale with its running mean on top, a short one with its points."""
    colour = "var(--curve-train)" if curve.event == "train" else "var(--curve-val)"
    x, y = across(_thin(curve.x)), _thin(curve.y)
    drawn = [(y, "0.9; opacity: 0.28"), (_running_mean(y), "1.8")] if curve.noisy else [(y, "1.8")]
    found = []
    for values, width in drawn:
        path = "L".join(f"{a:.2f} {b:.2f}" for a, b in zip(x, down(values), strict=True))
        style = f"fill: none; stroke: {colour}; stroke-linejoin: round; stroke-width: {width}"
        found.append(f'<path d="M{path}" style="{style}"/>')
    if len(x) <= _MARKED:
        marks = zip(x, down(y), strict=True)
        found += [f'<circle cx="{a:.2f}" cy="{b:.2f}" r="1.75" style="fill: {colour}"/>' for a, b in marks]
    return found


def _ticks(low: float, high: float, count: int, steps: Sequence[float], least: float = 0.0) -> Float64Array:
    """Multiples, between ``low`` and ``high``, of the smallest round step that divides them into ``count`` at most.

    Round steps are ``steps`` times a power of ten, and ``least`` or more.
    """
    rough = max((high - low) / count, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (*(power * round_step for round_step in steps), 10 * power) if step >= rough)
    return np.arange(math.ceil(low / step), math.floor(high / step) + 1, dtype=np.float64) * step


def _labels(ticks: Sequence[float] | Float64Array) -> list[str]:
    """Tick labels with the fewest digits that give the values exactly, at most five."""
    for digits in (2, 3, 4, 5):
        labels = [_short(tick, digits) for tick in ticks]
        values = [float(label.replace("−", "-")) for label in labels]
        if np.allclose(values, ticks, rtol=1e-6, atol=1e-12):
            break
    return labels


def _short(value: float, digits: int = 3) -> str:
    """A number in few characters."""
    text = f"{value:.{digits}g}" if value == 0 or abs(value) >= 0.001 else f"{value:.{digits - 2}e}"
    return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), text).replace("-", "−")


def _thin(values: Float64Array) -> Float64Array:
    """Average neighbours until at most 400 values are left; more cannot be seen and make the page large."""
    stride = -(-len(values) // _MAX_POINTS)
    return np.add.reduceat(values, starts := np.arange(0, len(values), stride)) / np.diff([*starts, len(values)])


def _running_mean(y: Float64Array) -> Float64Array:
    """Mean over a centred window of a twentieth of the curve, shorter at the ends."""
    window = np.ones(2 * (len(y) // 40) + 1)
    return np.convolve(y, window, "same") / np.convolve(np.ones_like(y), window, "same")


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Limits of the y axis; single spikes of a noisy curve are ignored."""
    ends = [np.quantile(curve.y, [0.005, 0.995]) if curve.noisy else curve.y for curve in curves]
    low, high = float(min(map(np.min, ends))), float(max(map(np.max, ends)))
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin
