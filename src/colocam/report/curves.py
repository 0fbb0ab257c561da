"""Training curves as inline SVG, one small plot per quantity, in the colors of the page's light or dark palette."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from colocam.evaluation.result import MAIN, NOT_QUANTITIES, is_number, method_title
from colocam.types import Float64Array
from colocam.utils.extensions import title_of

_COLORS = {"--curve-train": "#000001", "--curve-val": "#000002", "--line": "#000003", "--soft": "#000004"}
"""Colors of the page and what stands for them in a drawing."""
SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "colocam", "text.parse_math": False}
"""Text instead of outlines is smaller, and readers can select it; equal figures give equal bytes."""
_TITLES = {
    "loss": "Total loss",
    "cross_entropy": "Cross-entropy of the classes",
    "seeds": "Seeds (partial cross-entropy)",
    "crf": "CRF",
    "size": "Size constraint",
    "coloc": "Color co-localization",
    "accuracy": "Validation accuracy, %",
    "corloc": "Validation CorLoc, %",
    "criterion": "Selection criterion",
    "best": "Score that chooses the epoch",
    "cam": "CorLoc of the CAMs, %",
    "threshold": "Threshold τ",
    "color_growth": "Size of boxes with color mean, relative to without",
    "lr": "Learning rate",
    "skipped": "Skipped steps (loss not finite)",
}
_MAX_POINTS = 240
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
    names = dict.fromkeys(str(record["phase"]) for record in records)
    phases = []
    for name in sorted(names, key=lambda name: (_method(name) != "classifier", _method(name) == MAIN)):
        of_phase = [record for record in records if record["phase"] == name]
        panels = tuple(
            _panel(quantity, curves) for quantity in _quantities(of_phase) if (curves := _curves(of_phase, quantity))
        )
        if panels:
            phases.append(Phase(method_title(_method(name)) + name.removeprefix(_method(name)), panels))
    return phases


def _method(phase: str) -> str:
    """``colocam`` of ``colocam, round 1``."""
    return phase.partition(",")[0]


def _quantities(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the numbers in ``records``: the known ones in their order, unknown loss terms after the known terms."""
    quantities = {key for record in records for key in record} - NOT_QUANTITIES
    known = list(_TITLES)
    unknown_rank = known.index("coloc") + 0.5
    return sorted(quantities, key=lambda key: (known.index(key) if key in known else unknown_rank, key))


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
    title = title_of("colocam.losses.LOSSES", quantity) or _TITLES.get(quantity) or _in_words(quantity)
    last = tuple((curve.event, _short(curve.y[-1])) for curve in curves)
    summary = "; ".join(
        f"{'training' if curve.event == 'train' else 'validation'} from {_short(curve.y[0])} "
        f"to {_short(curve.y[-1])} over {len(curve.x)} points"
        for curve in curves
    )
    return Panel(title, last, _draw(curves, f"{title}: {summary}"))


def _in_words(key: str) -> str:
    """``cross_entropy`` as ``Cross entropy``."""
    return key[:1].upper() + key[1:].replace("_", " ").strip()


def _draw(curves: Sequence[Curve], description: str) -> Markup:
    """The curves as SVG: a noisy one pale with its running mean on top, a short one with its points."""
    with mpl.rc_context(SVG | {"font.size": 9, "axes.xmargin": 0.02}):
        figure = Figure((4.2, 2.1))
        axes = figure.add_axes((0.135, 0.13, 0.815, 0.83))
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.spines["bottom"].set_color(_COLORS["--line"])
        axes.grid(axis="y", color=_COLORS["--line"], linewidth=0.6, clip_on=False)
        axes.tick_params(length=0, labelcolor=_COLORS["--soft"])
        low, high = _range(curves)
        axes.set_ylim(low, high)
        for curve in curves:
            x, y = _thin(curve.x), np.clip(_thin(curve.y), low, high)  # spikes end at the frame
            dashes = "--" if curve.event == "val" else "-"  # a sign beside the color
            how: dict[str, Any] = {"linestyle": dashes, "color": _COLORS[f"--curve-{curve.event}"], "clip_on": False}
            if curve.noisy:
                axes.plot(x, y, linewidth=0.9, alpha=0.28, **how)
                y = _running_mean(y)
            axes.plot(x, y, linewidth=1.8, marker="o" if len(x) <= _MARKED else "", markersize=3.5, **how)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=(1, 2, 5, 10)))
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
        axes.xaxis.set_major_formatter(lambda step, _: f"{step / 1000:g}k" if step >= 10_000 else f"{step:g}")
        axes.yaxis.set_major_formatter(lambda value, _: _short(value, 5))
        svg = svg_of(figure, transparent=True)
    return _for_page(svg, description)


def svg_of(figure: Figure, **options: Any) -> str:  # noqa: ANN401 - matplotlib's
    """A figure as an SVG element; made in a context with :data:`SVG`."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), **options)
    return text.getvalue()[text.getvalue().index("<svg") :]


def _for_page(svg: str, description: str) -> Markup:
    """A drawing of matplotlib as a part of the page: in its colors, as wide as its place, without its own names."""
    svg = re.sub(r' id="[a-z]\w*[_.]\w+"|<metadata>.*</metadata>|<defs>\s*<style.*?</defs>', "", svg, flags=re.DOTALL)
    svg = re.sub(r"(?<=\.\d\d)\d+(?=[ \")])|(?<=>)\s+(?=<)|\s+(?=[LMCz\"])|font-family: [^;]*; ", "", svg)
    for variable, color in _COLORS.items():
        svg = svg.replace(color, f"var({variable})")
    head = f'role="img" aria-label="{escape(description)}"'
    svg = re.sub(r'width="\S+" height="\S+"', lambda _: head, svg, count=1)
    return Markup(svg)  # noqa: S704 - numbers of matplotlib, and a description without markup


def _short(value: float, digits: int = 3) -> str:
    """A number in few characters."""
    text = f"{value:.{digits}g}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"
    return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), text).replace("-", "−")


def _thin(values: Float64Array) -> Float64Array:
    """Average neighbors until at most 240 values are left; more cannot be seen and make the page large."""
    stride = -(-len(values) // _MAX_POINTS)
    return np.add.reduceat(values, starts := np.arange(0, len(values), stride)) / np.diff([*starts, len(values)])


def _running_mean(y: Float64Array) -> Float64Array:
    """Mean over a centered window of a twentieth of the curve, shorter at the ends."""
    window = np.ones(2 * (len(y) // 40) + 1)
    return np.convolve(y, window, "same") / np.convolve(np.ones_like(y), window, "same")


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Limits of the y axis; single spikes of a noisy curve are ignored."""
    ends = [np.quantile(curve.y, [0.005, 0.995]) if curve.noisy else curve.y for curve in curves]
    low, high = float(min(map(np.min, ends))), float(max(map(np.max, ends)))
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin
