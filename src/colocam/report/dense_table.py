"""The evaluation of dense shots as a table, in the terminal and in the report."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from colocam.evaluation.dense_result import DenseEvaluation, DenseRow

COLUMNS = (
    *("class right", "switches"),
    *("CorLoc", "with tag"),
    *("IoU", "with tag"),
    *("jitter", "with tag", "true"),
    "frames/s",
)


def dense_cells(row: DenseRow) -> list[str]:
    """The cells of a row, in the order of ``COLUMNS``; the second of a pair is that with the tag."""
    free, told = row.without_tag, row.with_tag
    return [
        *(_number(free.class_right), _number(free.switches, 1 if row.name == "mean of shots" else 0)),
        *(_number(free.corloc), _number(told.corloc)),
        *(_number(free.mean_iou, 2), _number(told.mean_iou, 2)),
        *(_number(free.jitter, 3), _number(told.jitter, 3), _number(row.true_jitter, 3)),
        _number(free.frames_per_second, 0),
    ]


def dense_title(result: DenseEvaluation) -> str:
    """What was measured, and what was left out, in one line."""
    left_out = [f"{tag}: {', '.join(shots)}" for tag, shots in result.unknown.items()]
    return (
        (f"refined by {result.refined}: " if result.refined else "")
        + f"{result.over_frames.frames} frames of {len(result.shots)} whole shots, from file to box, "
        f"smoothing {result.smooth}; CorLoc and class in percent of the {result.over_frames.boxed_frames} frames with "
        "true boxes"
    ) + (f"; left out, because the model does not know the tag: {'; '.join(left_out)}" if left_out else "")


def print_dense(results: Sequence[DenseEvaluation]) -> None:
    """Print for each run one row per shot, the mean of the shots and the mean over all frames; then mean ± std."""
    console = Console()
    for result in results:
        _print_shots(console, result)
    if len(results) > 1:
        console.print(f"mean ± std of {len(results)} runs")
        table = Table("", "mean of shots", "all frames")
        for name, value in _MEASURES.items():
            over_shots = [value(result.over_shots) for result in results]
            table.add_row(name, _spread(over_shots), _spread([value(result.over_frames) for result in results]))
        console.print(table)


_MEASURES: dict[str, Callable[[DenseRow], float | None]] = {
    "class right": lambda row: row.without_tag.class_right,
    "CorLoc": lambda row: row.without_tag.corloc,
    "CorLoc with tag": lambda row: row.with_tag.corloc,
    "IoU in percent": lambda row: 100 * row.without_tag.mean_iou,
    "IoU in percent with tag": lambda row: 100 * row.with_tag.mean_iou,
}


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.1f} ± {np.std(known, ddof=1):.1f}" if len(known) > 1 else "–"


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


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
