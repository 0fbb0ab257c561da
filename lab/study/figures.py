"""Figures of a study: bars, lines, box plots and images, as SVG and PNG."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from colocam.report.gallery import CaseImage, Group
from lab.study.tables import Entry, Measured

OURS = ("#b8400a", "#3c5a86", "#12703a", "#7a4fa3")
"""Colours of our results; the first is that of the report."""
PUBLISHED = ("#6b7686", "#a9b2bf", "#c9c4b5")
"""Greys of published numbers."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text instead of outlines: smaller, and readers can select it
    "svg.hashsalt": "colocam",
    "text.parse_math": False,
    "font.size": 10,
    "axes.edgecolor": "#a9b2bf",
    "axes.spines.top": False,
    "axes.spines.right": False,
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


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars, one group per name; whiskers are one standard deviation."""

    y: str
    names: tuple[str, ...]
    series: tuple[Series, ...]


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


@dataclass(frozen=True, slots=True)
class Boxes:
    """Box plots of repetitions over numbers; published means ± deviation as points."""

    x: str
    y: str
    places: tuple[float, ...]
    ours: tuple[Measured | None, ...]
    published: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]


@dataclass(frozen=True, slots=True)
class Images:
    """The first examples of each group, a row each."""

    groups: tuple[Group, ...]


Drawing = Bars | Lines | Boxes | Images


def draw(drawing: Drawing) -> tuple[str, bytes]:
    """A figure as SVG and PNG; equal numbers give equal bytes."""
    with mpl.rc_context(STYLE):
        match drawing:
            case Bars():
                figure = _bars(drawing)
            case Lines():
                figure = _lines(drawing)
            case Boxes():
                figure = _boxes(drawing)
            case Images():
                figure = _images(drawing)
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(
            svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), facecolor="white"
        )
        figure.savefig(png, format="png", dpi=130, metadata={"Software": None}, facecolor="white")
    return svg.getvalue()[svg.getvalue().index("<svg") :], png.getvalue()


def _bars(bars: Bars) -> Figure:
    figure = Figure(figsize=(max(6.4, 0.75 * len(bars.names) + 2), 3.9), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / max(len(bars.series), 1)
    for number, (series, colour) in enumerate(_coloured(bars.series)):
        x = np.arange(len(bars.names)) + (number - (len(bars.series) - 1) / 2) * width
        means, spreads = _numbers(series.entries)
        axes.bar(x, means, width, yerr=spreads, color=colour, label=series.name, ecolor="#17191e", capsize=2)
    axes.set_xticks(
        range(len(bars.names)),
        bars.names,
        rotation=30 if len(bars.names) > 4 else 0,
        ha="right" if len(bars.names) > 4 else "center",
    )
    _finish(axes, bars.y)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _lines(lines: Lines) -> Figure:
    figure = Figure(figsize=(6.8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    other = axes.twinx() if any(series.right for series in lines.series) else None
    for series, colour in _coloured(lines.series):
        means, spreads = _numbers(series.entries)
        known = np.isfinite(means)
        on = other if series.right and other is not None else axes
        on.errorbar(
            np.array(lines.places)[known],
            means[known],
            yerr=spreads[known],
            color=colour,
            label=series.name,
            marker="o",
            markersize=4,
            capsize=2,
            linestyle="none" if series.published else "--" if series.right else "-",
        )
    axes.set_xlabel(lines.x)
    if lines.log and axes.dataLim.y1 > 0:  # an empty figure has no logarithm
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # the default needs mathtext, which is off
    axes.set_xticks(lines.places, _readable(lines.places, np.log(lines.places) if lines.log else lines.places))
    axes.minorticks_off()
    _finish(axes, lines.y)
    if other is not None:
        other.set_ylabel(lines.right)
        other.spines["right"].set_visible(True)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _boxes(boxes: Boxes) -> Figure:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    x = np.arange(len(boxes.places))
    known = [(place, ours) for place, ours in zip(x, boxes.ours, strict=True) if ours is not None]
    if known:
        axes.boxplot(
            [ours.values for _, ours in known],
            positions=[place for place, _ in known],
            widths=0.5,
            boxprops={"color": OURS[0]},
            medianprops={"color": OURS[0]},
        )
    for (name, values), colour in zip(boxes.published, PUBLISHED, strict=False):
        means, spreads = np.array(values).T
        axes.errorbar(
            x, means, yerr=spreads, color=colour, label=name, marker="s", markersize=4, capsize=2, linestyle="none"
        )
    axes.plot([], [], color=OURS[0], label="ours: quartiles, whiskers at most 1.5 times their distance")
    axes.set_xticks(x, [f"{place:g}" for place in boxes.places])
    axes.set_xlabel(boxes.x)
    _finish(axes, boxes.y)
    figure.legend(loc="outside upper center", ncols=1, frameon=False)
    return figure


def _images(images: Images) -> Figure:
    each = max(1, MOST_IMAGES // max(len(images.groups), 1))
    cases = [
        # Each group starts at another class; otherwise all groups would show the same one.
        (group.title, group.cases[(number + place) % len(group.cases)])
        for number, group in enumerate(images.groups)
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


def _coloured(series: Sequence[Series]) -> list[tuple[Series, str]]:
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


def _numbers(
    entries: Sequence[Entry],
) -> tuple["np.ndarray[Any, np.dtype[np.float64]]", "np.ndarray[Any, np.dtype[np.float64]]"]:
    """Means and standard deviations of a series; NaN where unknown."""
    means = [
        entry.mean if isinstance(entry, Measured) else np.nan if isinstance(entry, str) or entry is None else entry
        for entry in entries
    ]
    spreads = [entry.std if isinstance(entry, Measured) else None for entry in entries]
    return np.array(means, np.float64), np.array(spreads, np.float64)


def _finish(axes: Any, y: str) -> None:  # noqa: ANN401 - matplotlib's axes
    axes.set_ylabel(y)
    axes.grid(axis="y", color="#e3e0d8", linewidth=0.6)
    axes.set_axisbelow(True)
