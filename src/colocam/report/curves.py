"""Training curves as inline SVG, one small plot per quantity, in the colours of the page's light or dark palette."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from colocam.evaluation.titles import method_title
from colocam.evaluation.training_log import is_number
from colocam.types import Float64Array

# matplotlib needs colours where the page uses CSS variables: these placeholders are replaced in the finished SVG.
_PALETTE = {"--curve-train": "#0a0b01", "--curve-val": "#0a0b02", "--soft": "#0a0b03", "--line": "#0a0b04"}

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


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one quantity over the steps of a phase: x (N,) increasing steps, y (N,) finite values."""

    event: str
    x: Float64Array
    y: Float64Array

    @property
    def noisy(self) -> bool:
        """Whether the curve is long and changes at most steps, unlike a learning rate, which is not smoothed."""
        return len(self.y) > 40 and len(np.unique(self.y)) > len(self.y) // 2


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
    for i, name in enumerate(names):
        own = [record for record in records if record["phase"] == name]
        panels = tuple(
            _panel(quantity, curves, f"p{i}-{j}-")
            for j, quantity in enumerate(_quantities(own))
            if (curves := _curves(own, quantity))
        )
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


def _panel(quantity: str, curves: Sequence[Curve], prefix: str) -> Panel:
    title = _TITLES.get(quantity, quantity)
    last = tuple((curve.event, _short(curve.y[-1])) for curve in curves)
    summary = "; ".join(
        f"{'training' if curve.event == 'train' else 'validation'} from {_short(curve.y[0])} "
        f"to {_short(curve.y[-1])} over {len(curve.x)} points"
        for curve in curves
    )
    return Panel(title, last, _draw(curves, prefix, f"{title}: {summary}"))


def _draw(curves: Sequence[Curve], prefix: str, description: str) -> Markup:
    style: dict[Any, Any] = {
        "svg.fonttype": "none",  # text instead of outlines: smaller, and readers can select it
        "svg.hashsalt": prefix,
        "text.parse_math": False,
        "font.size": 9,
        "axes.edgecolor": _PALETTE["--line"],
        "xtick.color": _PALETTE["--soft"],
        "ytick.color": _PALETTE["--soft"],
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.2, 2.1))
        axes = figure.add_axes((0.135, 0.13, 0.815, 0.83))
        for curve in curves:
            _plot(axes, curve)
        low, high = _range(curves)
        axes.set_ylim(low, high)
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
        ticks = [
            tick for tick in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low <= tick <= high
        ]
        axes.set_yticks(ticks, _labels(ticks))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 10_000 else f"{x:g}"))
        axes.grid(axis="y", color=_PALETTE["--line"], linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, pad=4)
        axes.spines[["top", "right", "left"]].set_visible(False)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))  # equal runs give equal pages
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    return _inline(buffer.getvalue(), prefix, description)


def _plot(axes: Any, curve: Curve) -> None:  # noqa: ANN401 - matplotlib's axes
    """Plot one curve: a noisy one pale with its running mean on top, a short one with its points."""
    colour = _PALETTE["--curve-train" if curve.event == "train" else "--curve-val"]
    x, y = _thin(curve.x), _thin(curve.y)
    if curve.noisy:
        axes.plot(x, y, color=colour, alpha=0.28, linewidth=0.9)
        axes.plot(x, _running_mean(y), color=colour, linewidth=1.8)
    else:
        marker = "o" if len(x) <= 40 else ""
        axes.plot(x, y, color=colour, linewidth=1.8, marker=marker, markersize=3.5, markeredgewidth=0)


def _labels(ticks: Sequence[float]) -> list[str]:
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


def _inline(svg: str, prefix: str, description: str) -> Markup:
    """Prepare a matplotlib SVG for the page: unique ids, the page's colours, the size of its container."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'(href="|url\()#', rf"\g<1>#{prefix}", body)
    for variable, colour in _PALETTE.items():
        body = body.replace(colour, f"var({variable})")
    box = re.search(r'viewBox="[^"]*"', body)
    assert box is not None
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} role="img" aria-label="{escape(description)}">'
    body = re.sub(r"^<svg[^>]*>", lambda _: head, body, count=1).replace("xlink:href", "href")
    return Markup(body.strip())  # noqa: S704 - matplotlib escapes text, the description is escaped above
