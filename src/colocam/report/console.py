"""Evaluations as tables in the terminal."""

from collections.abc import Iterable, Sequence

import numpy as np
from rich import markup
from rich.console import Console
from rich.table import Table

from colocam.evaluation.result import Evaluation, PredictionEvaluation
from colocam.evaluation.titles import method_title, ordered_methods, refined_title
from colocam.metrics import PROTOCOLS, Accuracy, Average, CorLoc, Instances
from colocam.utils.progress import printable

ROW_NAME, COLUMN = 24, 19
"""Characters of the row names and of the widest column, with their lines."""


def print_evaluations(evaluations: Sequence[Evaluation]) -> None:
    """Print CorLoc per protocol and per class: with its interval for one run, mean ± std for several."""
    console = Console()
    first = evaluations[0]
    methods = [
        method for method in ordered_methods(first.methods) if all(method in other.methods for other in evaluations)
    ]
    spread = (
        "95 % bootstrap interval over videos" if len(evaluations) == 1 else f"mean ± std of {len(evaluations)} runs"
    )
    frames = f"{first.data.frames} frames of {first.data.videos} {first.data.split} videos"
    console.print(f"CorLoc in percent, mean over classes, on {frames} ({spread})", soft_wrap=True)
    abreast = max(3, (console.width - ROW_NAME) // COLUMN)
    for start in range(0, len(methods), abreast):
        console.print(_table(evaluations, methods[start : start + abreast]))
    _print_refined(console, evaluations)
    console.print(f"classification accuracy: {_cell(run.classification for run in evaluations)}")
    instances = [run.instances for run in evaluations if run.instances is not None]
    if len(instances) == len(evaluations):
        _print_instances(console, instances)


def _table(evaluations: Sequence[Evaluation], methods: Sequence[str]) -> Table:
    """One column per method, one row per protocol, then one per class under ``tags-only``."""
    first = evaluations[0].methods
    table = Table("", *map(method_title, methods))
    for protocol in (name for name in PROTOCOLS if name in first[methods[0]]):
        table.add_row(protocol, *(_cell(run.methods[method][protocol] for run in evaluations) for method in methods))
    cells = {method: [run.methods[method]["tags-only"] for run in evaluations] for method in methods}
    top1 = (_cell(cell.top1 for cell in cells[method]) for method in methods)
    table.add_row("tags-only, top-1", *top1, end_section=True)
    for name in first[methods[0]]["tags-only"].classes:
        means = (_mean(cell.classes[name] for cell in cells[method]) for method in methods)
        table.add_row(f"tags-only, {escape(name)}", *means)
    return table


def _print_refined(console: Console, evaluations: Sequence[Evaluation]) -> None:
    """Print CorLoc of the boxes of a segmenter's masks, apart from what tags alone give."""
    for segmenter, methods in (evaluations[0].refined or {}).items():
        runs = [run.refined[segmenter] for run in evaluations if run.refined and segmenter in run.refined]
        if len(runs) < len(evaluations):
            continue
        console.print(f"refined by {escape(segmenter)}: more than tags alone, but without any true box", soft_wrap=True)
        shown = [method for method in ordered_methods(methods) if all(method in run for run in runs)]
        table = Table("", *(escape(refined_title(method, segmenter)) for method in shown))
        table.add_row("CorLoc", *(_cell(run[method] for run in runs) for method in shown))
        table.add_row("top-1", *(_cell(run[method].top1 for run in runs) for method in shown), end_section=True)
        for name in runs[0][shown[0]].classes:
            table.add_row(escape(name), *(_mean(run[method].classes[name] for run in runs) for method in shown))
        console.print(table)


def print_predictions(result: PredictionEvaluation) -> None:
    """Print the result of ``evaluate_predictions``."""
    console = Console()
    data = result.data
    console.print(
        f"CorLoc in percent, mean over classes, on {data.frames} frames of {data.videos} {data.split} videos "
        "(95 % bootstrap interval over videos)",
        soft_wrap=True,
    )
    columns = dict(result.maps or {})
    if result.boxes is not None:
        columns["boxes"] = result.boxes
    table = Table("", *(name.replace("oracle-", "oracle-\n") for name in columns))
    table.add_row("CorLoc", *(_cell([cell]) for cell in columns.values()))
    table.add_row("over frames", *(_mean([cell.frames]) for cell in columns.values()))
    if result.classification is not None:
        table.add_row("top-1", *(_cell([cell.top1]) for cell in columns.values()))
    table.add_section()
    for name in next(iter(columns.values())).classes:
        table.add_row(escape(name), *(_mean([cell.classes[name]]) for cell in columns.values()))
    console.print(table)
    accuracies = ", ".join(f"{value:.1f} ({iou})" for iou, value in result.max_box_acc.items())
    console.print(f"MaxBoxAcc by least IoU: {accuracies}", soft_wrap=True)
    if result.instances is not None:
        _print_instances(console, [result.instances])
    if result.pxap is not None:
        console.print(f"PxAP: {result.pxap:.1f}")
    if result.classification is not None:
        console.print(f"classification accuracy: {result.classification.accuracy:.1f}")
    if data.missing:
        console.print(f"MISSING: {data.missing} of {data.frames} frames have no prediction and count as wrong")


def _print_instances(console: Console, found: Sequence[Instances]) -> None:
    """Print recall by IoU, its mean and the precision on frames with several true boxes; means over runs."""
    first = found[0]
    console.print(
        f"frames with several true boxes: {first.frames}, with {first.boxes} boxes; "
        "share of the true boxes that are found, each by a box of its own, in percent",
        soft_wrap=True,
    )
    table = Table("", "", "IoU .3", ".5", ".7", "mean", "precision")
    for method, ways in first.methods.items():
        for way in ways:
            cells = [one.methods[method][way] for one in found if method in one.methods]
            recalls = [_mean(cell.recall[key] for cell in cells) for key in ("0.3", "0.5", "0.7", "mean")]
            precision = _mean(cell.precision["mean"] if cell.precision else None for cell in cells)
            table.add_row(escape(method_title(method)), way, *recalls, precision)
    console.print(table)


def _cell(scores: Iterable[CorLoc | Average | Accuracy | None]) -> str:
    """The main number with its interval, or mean ± std of several; a dash where a run has none."""
    known = [score for score in scores if score is not None]
    values = [score.accuracy if isinstance(score, Accuracy) else score.average for score in known]
    if not values:
        return "–"
    if len(values) > 1:
        return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
    interval = known[0].interval
    return f"{values[0]:.1f}" + (f" [{interval[0]:.0f}, {interval[1]:.0f}]" if interval else "")


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.1f}" if known else "–"


def escape(name: str) -> str:
    """A name of unknown origin, without markup and control characters."""
    return markup.escape(printable(name))
