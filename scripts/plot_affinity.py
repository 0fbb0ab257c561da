"""Plot the results of `colocam bench affinity --json FILE`: python scripts/plot_affinity.py FILE… -o docs/images.

Writes affinity-time.svg: milliseconds of the colour term against frames in a sequence, beside the paper's figure, one
pair of curves per file. Writes affinity-error.svg: relative errors against the tolerance, from the first file.
"""

import argparse
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from lab.study.figures import STYLE

INK, SOFT, LINE = "#1f2328", "#59636e", "#d9dee3"
COLORS = ("#0b62c4", "#b3470f", "#1a7f37", "#7a3fb0")
# The only time of the loss that the paper's evaluation states as a number: n = 64, 224x224, P100 and 48 CPU cores.
PAPER = (64, 81.0)
Row = dict[str, Any]


def main() -> None:
    """Read, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path, default=Path("docs/images"))
    arguments = parser.parse_args()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in arguments.files]
    arguments.out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({**STYLE, "font.size": 13}):
        for name, figure in (("time", draw_times(results)), ("error", draw_errors(results[0]["tolerance"]))):
            (arguments.out / f"affinity-{name}.svg").write_text(svg(figure), encoding="utf-8")


def draw_times(results: Sequence[Row]) -> Figure:
    """Time against n on logarithmic axes, each curve named at its end."""
    figure, axes = canvas(right=0.76)
    ends = []
    for result, color in zip(results, COLORS, strict=False):
        for kind, dash in (("scene", "-"), ("noise", (0, (4, 2)))):
            points = sorted(
                (row["count"], row["ms"])
                for row in result["cases"]
                if re.fullmatch(r"colour n=\d+", row["name"]) and row["frames"] == kind
            )
            if points:
                n, ms = zip(*points, strict=True)
                axes.plot(n, ms, color=color, linestyle=dash, linewidth=2, marker="o", markersize=5)
                device = result["device"].removeprefix("NVIDIA ")
                ends.append((n[-1], ms[-1], f"{device}, {'scenes' if kind == 'scene' else 'noise'}", color))
    axes.plot(*PAPER, marker="D", markersize=8, color=INK, linestyle="none")
    axes.annotate("paper, 81 ms\n(P100 + 48 cores)", PAPER, (8, -6), textcoords="offset points", ha="left", va="top")
    axes.set(xscale="log", yscale="log", xlabel="frames n in a sequence (224 × 224)", ylabel="ms, value and gradient")
    axes.set_xticks(sorted({count for result in results for count in counts(result)}))
    name_ends(axes, ends)
    plain_ticks(axes)
    return figure


def counts(result: Row) -> list[int]:
    """Lengths of the sequences measured."""
    return [row["count"] for row in result["cases"] if re.fullmatch(r"colour n=\d+", row["name"])]


def draw_errors(rows: Sequence[Row]) -> Figure:
    """Measured errors against the tolerance asked for, beside the line where they are equal."""
    figure, axes = canvas(right=0.80)
    rows = sorted(rows, key=lambda row: row["tol"])
    tol = [100 * row["tol"] for row in rows]
    axes.plot(tol, tol, color=SOFT, linewidth=1.2, linestyle=(0, (2, 2)))
    ends = [(tol[-1], tol[-1], "asked for", SOFT)]
    for key, name, color in (("error_W1", "W·1", COLORS[0]), ("error_WS", "W·S", COLORS[1])):
        errors = [100 * row[key] for row in rows]
        axes.plot(tol, errors, color=color, linewidth=2, marker="o", markersize=5)
        ends.append((tol[-1], errors[-1], name, color))
    axes.set(xscale="log", yscale="log", xlabel="tolerance asked for, %", ylabel="relative L2 error, %")
    axes.set_xticks(tol)
    name_ends(axes, ends)
    plain_ticks(axes)
    return figure


def canvas(right: float) -> tuple[Figure, Axes]:
    """A figure of 700 × 380 points on white, with room for names on the right."""
    figure = Figure(figsize=(700 / 72, 380 / 72), facecolor="white")
    axes = figure.add_axes((0.095, 0.145, right - 0.095, 0.815))
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def name_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each curve's name to the right of its last point, moved apart where two would touch."""
    axes.figure.canvas.draw()
    lowest = float("-inf")
    for x, y, text, color in sorted(ends, key=lambda end: end[1]):
        place = axes.transData.transform((x, y))[1] * 72 / axes.figure.dpi
        shift = max(0.0, lowest + 18 - place)
        lowest = place + shift
        axes.annotate(text, (x, y), (12, shift), textcoords="offset points", va="center", color=color)


def plain_ticks(axes: Axes) -> None:
    """Numbers as people write them in place of powers of ten."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def svg(figure: Figure) -> str:
    """The figure with real text and without a date: equal numbers give equal files."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
    return re.sub(r"[ \t]+\n", "\n", body)


if __name__ == "__main__":
    main()
