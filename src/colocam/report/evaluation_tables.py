"""Evaluations as tables: in the terminal, and as rows for the page.

Tests: tests/report/test_console.py, tests/report/test_page.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from rich import markup
from rich.console import Console
from rich.table import Column, Table

from colocam.evaluation.metrics import PROTOCOLS, Accuracy, Average, CorLoc, Instances
from colocam.evaluation.metrics.dense_scores import mean_or_none
from colocam.evaluation.metrics.object_scores import ObjectScores
from colocam.evaluation.result import (
    DenseEvaluation,
    DenseRow,
    EvaluatedData,
    Evaluation,
    PredictionEvaluation,
    method_title,
    ordered_methods,
    refined_title,
)
from colocam.utils.progress import printable

ROW_NAME, COLUMN = 24, 19
"""Characters of the row names and of the widest column, with their lines."""
COLUMNS = (
    *("class right", "switches"),
    *("CorLoc", "with tag"),
    *("IoU", "with tag"),
    *("jitter", "with tag", "true"),
    "frames/s",
)
_MEASURES: dict[str, Callable[[DenseRow], float | None]] = {
    "class right": lambda row: row.without_tag.class_right,
    "CorLoc": lambda row: row.without_tag.corloc,
    "CorLoc with tag": lambda row: row.with_tag.corloc,
    "IoU in percent": lambda row: 100 * row.without_tag.mean_iou,
    "IoU in percent with tag": lambda row: 100 * row.with_tag.mean_iou,
}


def print_evaluations(evaluations: Sequence[Evaluation]) -> None:
    """Print CorLoc per protocol and per class: with its interval for one run, mean ± std for several."""
    console = Console()
    first = evaluations[0]
    methods = [
        method for method in ordered_methods(first.methods) if all(method in other.methods for other in evaluations)
    ]
    _print_heading(console, first.data, len(evaluations))
    abreast = max(3, (console.width - ROW_NAME) // COLUMN)
    for start in range(0, len(methods), abreast):
        console.print(_table(evaluations, methods[start : start + abreast]))
    _print_refined(console, evaluations)
    console.print(f"classification accuracy: {_cell(run.classification for run in evaluations)}")
    instances = [run.instances for run in evaluations if run.instances is not None]
    if len(instances) == len(evaluations):
        _print_instances(console, instances)
    _print_objects(console, [run.objects for run in evaluations])


def _print_heading(console: Console, data: EvaluatedData, runs: int = 1) -> None:
    frames = f"{data.frames} frames of {data.videos} {data.split} videos"
    spread = "95 % bootstrap interval over videos" if runs == 1 else f"mean ± std of {runs} runs"
    console.print(f"CorLoc in percent, mean over classes, on {frames} ({spread})", soft_wrap=True)


def _table(evaluations: Sequence[Evaluation], methods: Sequence[str]) -> Table:
    """One column per method, one row per protocol, then one per class under ``tags-only``."""
    first = evaluations[0].methods
    table = Table("", *map(method_title, methods))
    for protocol in (name for name in PROTOCOLS if name in first[methods[0]]):
        table.add_row(protocol, *(_cell(run.methods[method][protocol] for run in evaluations) for method in methods))
    _add_classes(
        table, [[run.methods[method]["tags-only"] for run in evaluations] for method in methods], "tags-only, "
    )
    return table


def _add_classes(table: Table, columns: Sequence[Sequence[CorLoc]], before: str = "", *, top1: bool = True) -> None:
    """Rows for class and box right together, and for each class; a column is the CorLoc of one or several runs."""
    if top1:
        table.add_row(f"{before}top-1", *(_cell(cell.top1 for cell in cells) for cells in columns))
    table.add_section()
    for name in columns[0][0].classes:
        table.add_row(before + escape(name), *(_mean(cell.classes[name] for cell in cells) for cells in columns))


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
        _add_classes(table, [[run[method] for run in runs] for method in shown])
        console.print(table)


def print_predictions(result: PredictionEvaluation) -> None:
    """Print the result of ``evaluate_predictions``."""
    console = Console()
    data = result.data
    _print_heading(console, data)
    columns = dict(result.maps or {})
    if result.boxes is not None:
        columns["boxes"] = result.boxes
    table = Table("", *(name.replace("oracle-", "oracle-\n") for name in columns))
    table.add_row("CorLoc", *(_cell([cell]) for cell in columns.values()))
    table.add_row("over frames", *(_mean([cell.frames]) for cell in columns.values()))
    _add_classes(table, [[cell] for cell in columns.values()], top1=result.classification is not None)
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


def _print_instances(console: Console, instances: Sequence[Instances]) -> None:
    """Print recall by IoU, its mean and the precision on frames with several true boxes; means over runs."""
    first = instances[0]
    console.print(
        f"frames with several true boxes: {first.frames}, with {first.boxes} boxes; "
        "share of the true boxes that are found, each by a box of its own, in percent",
        soft_wrap=True,
    )
    table = Table("", "", "IoU .3", ".5", ".7", "mean", "precision")
    for title, way, shares in instance_rows(instances):
        table.add_row(escape(title), way, *shares)
    console.print(table)


def instance_rows(instances: Sequence[Instances]) -> list[tuple[str, str, list[str]]]:
    """Frames with several true boxes: title of the method, way, recall at each IoU, their mean, precision."""
    rows = []
    for method in ordered_methods(instances[0].methods if instances else ()):
        for way in instances[0].methods[method]:
            cells = [one.methods[method][way] for one in instances if method in one.methods]
            recalls = [_mean(cell.recall.get(key) for cell in cells) for key in ("0.3", "0.5", "0.7", "mean")]
            precision = _mean(cell.precision["mean"] if cell.precision else None for cell in cells)
            rows.append((method_title(method), way, [*recalls, precision]))
    return rows


def object_rows(scores: Sequence[ObjectScores]) -> list[tuple[str, list[str]]]:
    """What was counted, and a cell for each score as "name value"; means over runs."""

    def mean(name: str, part: str, score: str, digits: int = 1) -> str:
        values = [getattr(one, score) for run in scores if (one := getattr(run, part)) is not None]
        return f"{name} {number(mean_or_none(values), digits)}"

    first, rows = scores[0], []
    for part, title in (("every_frame", "all boxes"), ("several", "frames with several boxes")):
        if (of_first := getattr(first, part)) is not None:
            names = {"AP50": "ap50", "mean of classes": "class_ap50", "recall": "recall", "precision": "precision"}
            cells = [mean(name, part, score) for name, score in names.items()]
            rows.append((f"{title}: {of_first.boxes} in {of_first.frames} frames", cells))
    if (seen := first.presence) is not None:
        cells = [mean("ROC AUC", "presence", "roc_auc", 2), mean("AP of empty frames", "presence", "empty_ap", 2)]
        cells.append(mean("false boxes per empty frame", "presence", "all_false_boxes", 2))
        cells.append(mean("with 95 % of the right boxes kept", "presence", "false_boxes", 2))
        rows.append((f"presence: {seen.empty_frames} of {seen.frames} frames are empty", cells))
    if (followed := first.tracks) is not None:
        names = {"IDF1": "idf1", "ID recall": "recall", "ID precision": "precision"}
        cells = [mean(name, "tracks", score) for name, score in names.items()]
        rows.append((f"tracks: {followed.tracks} for {followed.objects} objects", cells))
    return rows


def _print_objects(console: Console, scores: Sequence[ObjectScores | None]) -> None:
    """Print all boxes, presence and tracks, where every run has them."""
    known = [one for one in scores if one is not None]
    if len(known) == len(scores):
        console.print("as 'colocam localize' finds them, tag given (boxes and tracks: --instances)", soft_wrap=True)
        for title, cells in object_rows(known):
            console.print(f"  {title}: {', '.join(cells)}", soft_wrap=True)


def _cell(scores: Iterable[CorLoc | Average | Accuracy | None]) -> str:
    """The main number with its interval, or mean ± std of several; a dash where a run has none."""
    known = [score for score in scores if score is not None]
    if len(known) != 1:
        return _spread([score.average for score in known])
    interval = known[0].interval
    return number(known[0].average) + (f" [{interval[0]:.0f}, {interval[1]:.0f}]" if interval else "")


def _spread(values: Iterable[float | None]) -> str:
    """Mean ± std of the known values."""
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.1f} ± {np.std(known, ddof=1):.1f}" if len(known) > 1 else "–"


def _mean(values: Iterable[float | None]) -> str:
    return number(mean_or_none(list(values)))


def number(value: float | None, digits: int = 1) -> str:
    """A number as text; a dash where it is not known."""
    return "–" if value is None else f"{value:.{digits}f}"


def escape(name: str) -> str:
    """A name of unknown origin, without markup and control characters."""
    return markup.escape(printable(name))


def dense_cells(row: DenseRow) -> list[str]:
    """The cells of a row, in the order of ``COLUMNS``; the second of a pair is that with the tag."""
    free, tagged = row.without_tag, row.with_tag
    return [
        *(number(free.class_right), number(free.switches, 1 if row.name == "mean of shots" else 0)),
        *(number(free.corloc), number(tagged.corloc)),
        *(number(free.mean_iou, 2), number(tagged.mean_iou, 2)),
        *(number(free.jitter, 3), number(tagged.jitter, 3), number(row.true_jitter, 3)),
        number(free.frames_per_second, 0),
    ]


def dense_title(result: DenseEvaluation) -> str:
    """What was measured, and what was left out, in one line."""
    left_out = [f"{tag}: {', '.join(shots)}" for tag, shots in result.unknown.items()]
    return (
        (f"with the prior {result.prior}, more than tags alone: " if result.prior else "")
        + (f"refined by {result.refined}: " if result.refined else "")
        + f"{result.over_frames.frames} frames of {len(result.shots)} whole shots, from file to box, "
        f"smoothing {result.smooth}; CorLoc and class in percent of the {result.over_frames.boxed_frames} frames with "
        "true boxes"
    ) + (f"; left out, because the model does not know the tag: {'; '.join(left_out)}" if left_out else "")


def print_dense(results: Sequence[DenseEvaluation]) -> None:
    """Print for each run one row per shot, the mean of the shots and the mean over all frames; then mean ± std."""
    console = Console()
    for result in results:
        _print_shots(console, result)
        _print_objects(console, [result.objects])
    if len(results) > 1:
        console.print(f"mean ± std of {len(results)} runs")
        table = Table("", "mean of shots", "all frames")
        for name, value in _MEASURES.items():
            over_shots = [value(result.over_shots) for result in results]
            table.add_row(name, _spread(over_shots), _spread([value(result.over_frames) for result in results]))
        console.print(table)


def _print_shots(console: Console, result: DenseEvaluation) -> None:
    console.print(escape(dense_title(result)), soft_wrap=True)
    headers = (column.replace(" ", "\n").replace("/", "\n/") for column in COLUMNS)
    table = Table(Column("", overflow="fold"), *headers, padding=(0, 0))
    for row in result.shots:
        table.add_row(escape(row.name), *dense_cells(row))
    table.add_section()
    for row in (result.over_shots, result.over_frames):
        table.add_row(row.name, *dense_cells(row))
    console.print(table)


def by_protocol(evaluation: Evaluation) -> dict[str, dict[str, CorLoc]]:
    """Protocol → method → result, in the order of the tables."""
    values = {
        protocol: {
            method: evaluation.methods[method][protocol]
            for method in ordered_methods(evaluation.methods)
            if protocol in evaluation.methods[method]
        }
        for protocol in PROTOCOLS
    }
    return {protocol: cells for protocol, cells in values.items() if cells}


def class_rows(cells: Iterable[CorLoc]) -> list[tuple[str, list[float | None], float | None]]:
    """Each tag with the value of each method, and the gain of the last method over the first."""
    known = list(cells)
    values = {tag: [cell.classes.get(tag) for cell in known] for cell in known for tag in cell.classes}
    return [(tag, each, gain(each)) for tag, each in values.items()]


def gain(values: Sequence[float | None]) -> float | None:
    """Points by which the last is above the first; None for a single value or where either is missing."""
    if len(values) < 2 or values[0] is None or values[-1] is None:
        return None
    return values[-1] - values[0]


def threshold_text(value: float | Mapping[str, float] | None) -> str:
    """One threshold, or the range of those of the classes."""
    if isinstance(value, Mapping):
        return f"{min(value.values()):.2f}–{max(value.values()):.2f}" if value else "–"
    return number(value, 2)
