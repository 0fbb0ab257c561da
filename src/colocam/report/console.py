"""The evaluation as a table in the terminal."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from colocam.metrics import PROTOCOLS, RESERVED
from colocam.report.evaluation_rows import method_title, methods_of

ROW_NAME, COLUMN = 24, 19
"""Characters that the names of the rows and the widest column take, with their lines."""


def print_evaluations(evaluations: Sequence[dict[str, Any]]) -> None:
    """Print CorLoc per protocol and per class: with its interval for one run, mean ± std for several."""
    console = Console()
    first = evaluations[0]
    methods = [method for method in methods_of(first) if all(method in other for other in evaluations)]
    data = first["data"]
    spread = (
        "95 % bootstrap interval over videos" if len(evaluations) == 1 else f"mean ± std of {len(evaluations)} runs"
    )
    frames = f"{data['frames']} frames of {data['videos']} {data['split']} videos"
    console.print(f"CorLoc in percent, mean over classes, on {frames} ({spread})", soft_wrap=True)
    abreast = max(3, (console.width - ROW_NAME) // COLUMN)
    for start in range(0, len(methods), abreast):
        console.print(_table(evaluations, methods[start : start + abreast]))
    accuracy = [{"average": run["classification"]["accuracy"], **run["classification"]} for run in evaluations]
    console.print(f"classification accuracy: {_cell(accuracy)}")
    if all("instances" in run for run in evaluations):
        _print_instances(console, [run["instances"] for run in evaluations])


def _table(evaluations: Sequence[dict[str, Any]], methods: Sequence[str]) -> Table:
    """One column per method, one row per protocol, then one per class under ``tags-only``."""
    first = evaluations[0]
    table = Table("", *map(method_title, methods))
    for protocol in (name for name in PROTOCOLS if name in first[methods[0]]):
        table.add_row(protocol, *(_cell([run[method][protocol] for run in evaluations]) for method in methods))
    top1 = (_cell([run[method]["tags-only"]["top1"] for run in evaluations]) for method in methods)
    table.add_row("tags-only, top-1", *top1, end_section=True)
    for name in first["classification"]["per_class"]:
        means = (_mean([run[method]["tags-only"][name] for run in evaluations]) for method in methods)
        table.add_row(f"tags-only, {escape(name)}", *means)
    return table


def print_predictions(result: dict[str, Any]) -> None:
    """Print what ``evaluate_predictions`` found."""
    console = Console()
    data = result["data"]
    console.print(
        f"CorLoc in percent, mean over classes, on {data['frames']} frames of {data['videos']} {data['split']} videos "
        "(95 % bootstrap interval over videos)",
        soft_wrap=True,
    )
    protocols = result["maps"] if "maps" in result else {"boxes": result["boxes"]}
    table = Table("", *(name.replace("oracle-", "oracle-\n") for name in protocols))
    table.add_row("CorLoc", *(_cell([cell]) for cell in protocols.values()))
    table.add_row("over frames", *(f"{cell['frames']:.1f}" for cell in protocols.values()))
    if "classification" in result:
        table.add_row("top-1", *(_cell([cell["top1"]]) for cell in protocols.values()))
    table.add_section()
    for name in (key for key in next(iter(protocols.values())) if key not in RESERVED):
        table.add_row(escape(name), *(_mean([cell[name]]) for cell in protocols.values()))
    console.print(table)
    accuracies = ", ".join(f"{value:.1f} ({iou})" for iou, value in result["max_box_acc"].items())
    console.print(f"MaxBoxAcc by least IoU: {accuracies}", soft_wrap=True)
    if "instances" in result:
        _print_instances(console, [result["instances"]])
    if "pxap" in result:
        console.print(f"PxAP: {result['pxap']:.1f}")
    if "classification" in result:
        console.print(f"classification accuracy: {result['classification']['accuracy']:.1f}")
    if data["missing"]:
        console.print(f"MISSING: {data['missing']} of {data['frames']} frames have no prediction and count as wrong")


def _print_instances(console: Console, found: Sequence[dict[str, Any]]) -> None:
    """Print recall by IoU, its mean and the precision on frames with several true boxes; means over runs."""
    first = found[0]
    console.print(
        f"frames with several true boxes: {first['frames']}, with {first['boxes']} boxes; "
        "share of them found, each by a box of its own, in percent",
        soft_wrap=True,
    )
    table = Table("", "", "IoU .3", ".5", ".7", "mean", "precision")
    for method, ways in first["methods"].items():
        for way in ways:
            cells = [one["methods"][method][way] for one in found if method in one["methods"]]
            recalls = [_mean([cell["recall"][key] for cell in cells]) for key in ("0.3", "0.5", "0.7", "mean")]
            precision = _mean([cell["precision"]["mean"] if cell["precision"] else None for cell in cells])
            table.add_row(escape(method_title(method)), way, *recalls, precision)
    console.print(table)


def _cell(results: list[dict[str, Any]]) -> str:
    averages = [result["average"] for result in results]
    if len(averages) == 1:
        low, high = results[0]["interval"]
        return f"{averages[0]:.1f} [{low:.0f}, {high:.0f}]"
    return f"{np.mean(averages):.1f} ± {np.std(averages, ddof=1):.1f}"


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.1f}" if known else "–"
