"""Figures of a study: bars, lines, box plots and images, as SVG and PNG."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import cv2
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from colocam.report.curves import SVG, svg_of
from colocam.report.gallery import CaseImage, Group
from colocam.types import Float64Array
from lab.study.tables import Entry, Measured

OURS = ("#b8400a", "#3c5a86", "#12703a", "#7a4fa3")
"""Colors of our results; the first is that of the report."""
PUBLISHED = ("#6b7686", "#a9b2bf", "#c9c4b5")
"""Grays of published numbers."""
STYLE: dict[Any, Any] = {
    **SVG,
    "font.size": 10,
    "axes.edgecolor": "#a9b2bf",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.facecolor": "white",
}
NAME = 0.04
"""Share of the axis that a tick label takes."""
MOST_IMAGES = 8
"""Most rows of a figure of images."""


@dataclass(frozen=True, slots=True)
class Series:
    """One entry of the legend, with a value for each position on the x axis; None leaves a gap."""

    name: str
    entries: Sequence[Entry]
    published: bool = False
    right: bool = False
    """Belongs to the axis on the right."""


class Drawing(Protocol):
    """What a study draws."""

    def figure(self) -> Figure:
        """The figure of matplotlib."""


def draw(drawing: Drawing) -> tuple[str, bytes]:
    """A figure as SVG and PNG; equal numbers give equal bytes."""
    with mpl.rc_context(STYLE):
        figure, png = drawing.figure(), io.BytesIO()
        figure.savefig(png, format="png", dpi=130, metadata={"Software": None})
        return svg_of(figure), png.getvalue()


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars, one group per name; whiskers are one standard deviation."""

    y: str
    names: tuple[str, ...]
    series: tuple[Series, ...]

    def figure(self) -> Figure:
        """Names below their groups, at a slant if there are many."""
        figure, axes = _empty(max(6.4, 0.75 * len(self.names) + 2), 3.9, "", self.y)
        width = 0.8 / max(len(self.series), 1)
        for number, (series, color) in enumerate(_colored(self.series)):
            x = np.arange(len(self.names)) + (number - (len(self.series) - 1) / 2) * width
            means, spreads = _numbers(series.entries)
            axes.bar(x, means, width, yerr=spreads, color=color, label=series.name, ecolor="#17191e", capsize=2)
        turn, side = (30, "right") if len(self.names) > 4 else (0, "center")
        axes.set_xticks(range(len(self.names)), self.names, rotation=turn, ha=side)
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return figure


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over numbers; whiskers are one standard deviation."""

    x: str
    y: str
    places: tuple[float, ...]
    series: tuple[Series, ...]
    right: str = ""
    """Title of the axis on the right, where a series uses it."""
    log: bool = False
    """Both axes logarithmic."""

    def figure(self) -> Figure:
        """Published numbers are points without a line."""
        figure, axes = _empty(6.8, 4.2, self.x, self.y)
        other = axes.twinx() if self.right else axes
        for series, color in _colored(self.series):
            means, spreads = _numbers(series.entries)
            known, dash = np.isfinite(means), "none" if series.published else "--" if series.right else "-"
            on, x = other if series.right else axes, np.array(self.places)[known]
            _points(on, x, means[known], spreads[known], color=color, label=series.name, marker="o", linestyle=dash)
        if self.log and axes.dataLim.y1 > 0:  # an empty figure has no logarithm
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # the default needs mathtext, which is off
        axes.set_xticks(self.places, _readable(self.places, np.log(self.places) if self.log else self.places))
        axes.minorticks_off()
        if self.right:
            other.set_ylabel(self.right)
            other.spines["right"].set_visible(True)
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return figure


@dataclass(frozen=True, slots=True)
class Boxes:
    """Box plots of repetitions over numbers; published means ± deviation as points."""

    x: str
    y: str
    places: tuple[float, ...]
    ours: tuple[Measured | None, ...]
    published: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]

    def figure(self) -> Figure:
        """Boxes at even distances."""
        figure, axes = _empty(7.2, 4.2, self.x, self.y)
        known = {place: ours.values for place, ours in enumerate(self.ours) if ours is not None}
        line: dict[str, Any] = {"color": OURS[0]}
        if known:
            axes.boxplot([*known.values()], positions=[*known], widths=0.5, boxprops=line, medianprops=line)
        x = np.arange(len(self.places))
        for (name, values), color in zip(self.published, PUBLISHED, strict=False):
            _points(axes, x, *np.array(values).T, label=name, marker="s", color=color, linestyle="none")
        axes.plot([], [], label="ours: quartiles, whiskers at most 1.5 times their distance", **line)
        axes.set_xticks(x, [f"{place:g}" for place in self.places])
        figure.legend(loc="outside upper center", ncols=1, frameon=False)
        return figure


@dataclass(frozen=True, slots=True)
class Images:
    """The first examples of each group, a row each."""

    groups: tuple[Group, ...]

    def figure(self) -> Figure:
        """The frame with its true box, then the map of each method."""
        each = max(1, MOST_IMAGES // max(len(self.groups), 1))
        cases = [
            # Each group starts at another class; otherwise all groups would show the same one.
            (group.title, group.cases[(number + place) % len(group.cases)])
            for number, group in enumerate(self.groups)
            for place in range(min(each, len(group.cases)))
        ][:MOST_IMAGES]
        columns = max((len(case.images) for _, case in cases), default=1)
        figure = Figure(figsize=(2.1 * columns, 2.3 * max(len(cases), 1)))
        figure.subplots_adjust(0.01, 0.01, 0.99, 0.97, wspace=0.04, hspace=0.14)
        if not cases:
            figure.text(0.5, 0.5, "no example", ha="center")
        for row, (title, case) in enumerate(cases):
            for column, image in enumerate(case.images):
                axes = figure.add_subplot(len(cases), columns, row * columns + column + 1)
                axes.imshow(decode(image))
                axes.set_axis_off()
                axes.set_title(f"{title}: {case.tag}" if column == 0 else f"{image.title}, {image.verdict}", fontsize=7)
        return figure


def decode(image: CaseImage) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """The pixels (H, W, 3) of an image in a data: address."""
    data = np.frombuffer(base64.b64decode(image.address.partition(",")[2]), np.uint8)
    pixels = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert pixels is not None
    return np.asarray(pixels[..., ::-1], np.uint8)


def _colored(series: Sequence[Series]) -> list[tuple[Series, str]]:
    ours, theirs = iter(OURS * len(series)), iter(PUBLISHED * len(series))
    return [(one, next(theirs) if one.published else next(ours)) for one in series]


def _readable(places: Sequence[float], along: Any) -> list[str]:  # noqa: ANN401 - numbers of any kind
    """Tick labels; a label that would overlap the next one to the right is left out."""
    names, free = [], np.inf
    for place, x in zip(reversed(places), reversed(np.asarray(along)), strict=True):
        fits = free - x >= NAME * np.ptp(along)
        names.append(f"{place:g}" if fits else "")
        free = x if fits else free
    return names[::-1]


def _numbers(entries: Sequence[Entry]) -> tuple[Float64Array, Float64Array]:
    """Means and standard deviations of a series; NaN where unknown."""
    means = [
        entry.mean if isinstance(entry, Measured) else np.nan if isinstance(entry, str) or entry is None else entry
        for entry in entries
    ]
    spreads = [entry.std if isinstance(entry, Measured) else None for entry in entries]
    return np.array(means, np.float64), np.array(spreads, np.float64)


def _empty(width: float, height: float, x: str, y: str) -> tuple[Figure, Axes]:
    """A figure with one plot and the titles of its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(axis="y", color="#e3e0d8", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _points(axes: Axes, x: Any, means: Any, spreads: Any, **line: Any) -> None:  # noqa: ANN401 - arrays and matplotlib's
    """Points with whiskers of one standard deviation."""
    axes.errorbar(x, means, yerr=spreads, markersize=4, capsize=2, **line)
