"""Tables and a figure of learning curves: python scripts/plot_corrections.py FILE… -o docs/images/corrections.svg.

Prints a Markdown table for each data set and setting: CorLoc under the four protocols, mean ± standard deviation over
seeds. The figure shows ``tags-only`` against boxes a class: all parts by each order of frames, the few-shot rival, the
model before, and the ceiling.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.study.figures import STYLE
from colocam.metrics.protocols import PROTOCOLS

SOFT, LINE = "#59636e", "#d9dee3"
CURVES = {
    ("random", "all"): ("corrections, random frames", "#0b62c4"),
    ("learning", "all"): ("corrections, even distances", "#1a7f37"),
    ("errors", "all"): ("corrections, by doubt", "#7a3fb0"),
    ("random", "few-shot"): ("the same boxes alone", "#b3470f"),
}
Key = tuple[str, int | None, str]
Table = dict[Key, list[dict[str, Any]]]


def main() -> None:
    """Read, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path, help="the figure, SVG or PNG")
    arguments = parser.parse_args()
    results: defaultdict[str, Table] = defaultdict(lambda: defaultdict(list))
    for path in arguments.files:
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            own = [one for one in line["settings"] if not one.startswith("few_shot_steps=")]
            results[", ".join([line["data"], *own])][line["order"], line["boxes"], label(line)].append(line)
    for name, table in list(results.items()):  # the rival and the model before have no settings of learning
        table.update({key: lines for key, lines in results[name.split(", ")[0]].items() if key not in table})
    for name, table in results.items():
        print(f"### {name}\n\n{markdown(table)}\n")
    if arguments.out is not None:
        curves = {name: table for name, table in results.items() if ("random", 10, "all") in table} or results
        with mpl.rc_context({**STYLE, "font.size": 13}):
            draw(curves).savefig(arguments.out, bbox_inches="tight", dpi=120)


def label(line: dict[str, Any]) -> str:
    """The parts of a cell, with the steps of the rival where they are not the usual ones."""
    steps = [one.partition("=")[2] for one in line["settings"] if one.startswith("few_shot_steps=")]
    return ", ".join([line["parts"], *(f"{count} steps" for count in steps)])


def markdown(table: Table) -> str:
    """One row for each cell."""
    rows = [
        f"| frames | parts | boxes a class | {' | '.join(PROTOCOLS)} | kept decoders | seconds | seeds |",
        "|" + "---|" * (len(PROTOCOLS) + 6),
    ]
    order = ["before", "quick", "threshold", "per_class", "seeds", "projection", "all", "few-shot"]
    for key in sorted(table, key=lambda key: (key[1] is None, key[1] or 0, order.index(key[2].split(",")[0]), key[0])):
        (chosen, boxes, parts), lines = key, table[key]
        scores = [spread([line["corloc"][protocol] for line in lines]) for protocol in PROTOCOLS]
        kept = sum("decoder" in line.get("kept", ()) for line in lines)
        seconds = np.mean([line["seconds"] for line in lines])
        cells = [chosen, parts, "all" if boxes is None else str(boxes), *scores, str(kept), f"{seconds:.0f}"]
        if parts == "before":
            cells = ["–", parts, "0", *scores, "–", "–"]
        rows.append(f"| {' | '.join(cells)} | {len(lines)} |")
    return "\n".join(rows)


def spread(values: list[float]) -> str:
    """Mean ± sample standard deviation."""
    deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{deviation}"


def draw(results: dict[str, Table]) -> Figure:
    """One panel for each data set."""
    figure = Figure(figsize=(6.4 * len(results), 4.6))
    for at, (name, table) in enumerate(results.items(), start=1):
        panel(figure.add_subplot(1, len(results), at), name, table)
    figure.tight_layout()
    return figure


def panel(axes: Axes, title: str, table: Table) -> None:
    """``tags-only`` against boxes a class."""
    before = means(table, ("random", 0, "before"))
    for (chosen, parts), (label, color) in CURVES.items():
        own = [key for key in table if key[0] == chosen and key[2].startswith(parts) and key[1]]
        points = [(key[1], means(table, key)) for key in sorted(own, key=lambda key: key[1] or 0)]
        if parts == "all" and before is not None:
            points = [(0, before), *points]
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, "o-", color=color, label=label, markersize=5)
    lines = {"before": before, "all boxes of the split": means(table, ("random", None, "all"))}
    for (label, level), dash in zip(lines.items(), (":", "--"), strict=True):
        if level is not None:
            axes.axhline(level, color=SOFT, linestyle=dash, linewidth=1, label=label)
    axes.set_title(title)
    axes.set_xscale("symlog", linthresh=2)
    axes.set_xticks([0, 2, 5, 10, 20, 50], ["0", "2", "5", "10", "20", "50"])
    axes.set_xlabel("corrected boxes a class")
    axes.set_ylabel("CorLoc tags-only, %")
    axes.grid(color=LINE)
    axes.legend(frameon=False, fontsize=10, loc="lower right")


def means(table: Table, key: Key) -> float | None:
    """Mean ``tags-only`` of a cell over seeds."""
    lines = table.get(key)
    return float(np.mean([line["corloc"]["tags-only"] for line in lines])) if lines else None


if __name__ == "__main__":
    main()
