"""One self-contained HTML page per run, without scripts or external files.

A reader sees first: one sentence, a good, a typical and a bad picture, confusions, and the next command; then the
worst videos, confused classes and what a few boxes would bring. Tables of protocols are for researchers, and folded.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from colocam.errors import ColocamError
from colocam.evaluation.metrics import PROTOCOLS, CorLoc
from colocam.evaluation.result import (
    DENSE,
    OBJECTS,
    Evaluation,
    method_title,
    plain,
    read_dense,
    read_evaluation,
    read_metrics,
    read_object,
    refined_title,
)
from colocam.report.curves import training_curves
from colocam.report.evaluation_tables import (
    COLUMNS,
    by_protocol,
    class_rows,
    dense_cells,
    dense_title,
    gain,
    instance_rows,
    number,
    object_rows,
    threshold_text,
)
from colocam.report.gallery import Case, Group, gallery
from colocam.report.next_steps import PORT, confused_pairs, few_boxes, serve_command, worse_classes, worst_videos
from colocam.utils.files import write_text
from colocam.video.drawing import HEAT_COLORS, PREDICTED, TRUE

MOST_CLASSES = 12
"""A confusion matrix with more classes is folded away."""


def environment(room: str) -> Environment:
    """Templates of the folder ``room`` of colocam, which may include those of ``report``."""
    return Environment(
        loader=ChoiceLoader([PackageLoader("colocam", room), PackageLoader("colocam", "report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_report(run: Path) -> Path:
    """Write ``run``/report/index.html from the files of the run folder and return its path.

    Only config.yaml is required: a run without true boxes has no evaluation, an unfinished run has only some curves.
    """
    target = run / "report" / "index.html"
    # JSON of a run folder may hold half of a surrogate pair, which UTF-8 does not: the page shows a question mark.
    write_text(target, render(run).encode("utf-8", errors="replace").decode("utf-8"))
    return target


def render(run: Path) -> str:
    """The report of ``run`` as HTML."""
    try:
        configuration = (run / "config.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ColocamError(f"{run} is not a run folder: it has no readable config.yaml") from error
    evaluation = read_evaluation(run / "evaluation.json")
    metrics, facts = run / "metrics.jsonl", run / "environment.json"
    templates = environment("report")
    templates.filters |= {
        "number": number,
        "points": _points,
        "title": method_title,
        "refined": refined_title,
        "threshold": threshold_text,
        "class_rows": class_rows,
        "gain": lambda cells: gain([cell.average for cell in cells]),
        "interval": lambda score: f"{score.interval[0]:.1f}–{score.interval[1]:.1f}" if score.interval else "",
    }
    groups = gallery(run / "cases.npz")
    doubtful = gallery(run / "review.npz", "run 'colocam review' again")
    protocols = by_protocol(evaluation) if evaluation else {}
    worst = worst_videos(run, groups, doubtful)
    return templates.get_template("page.html").render(
        name=run.resolve().name,
        told=_sentence(evaluation) if evaluation else "",
        worse=worse_classes(next(iter(protocols.values()))) if protocols else "",
        worst=worst,
        serve_worst=serve_command(run, [video.name for video in worst], PORT),
        confused=confused_pairs(evaluation.confusion or {}) if evaluation else [],
        boxes=few_boxes(protocols),
        learn=f"colocam learn {shlex.quote(str(run))} corrections.csv -o {shlex.quote(f'{run}-learned')}",
        pictures=pictures(groups),
        confusion=confusion_table(evaluation.confusion or {}) if evaluation else None,
        next=_next_step(run, doubtful) if evaluation else None,
        serve=serve_command(run, _clips_of(doubtful)),
        evaluate=f"colocam evaluate {shlex.quote(str(run))} --boxes TABLE",
        evaluation=evaluation,
        protocols=protocols,
        meanings=PROTOCOLS,
        summary=dict(_flatten(plain(evaluation.data))) if evaluation else {},
        phases=training_curves(read_metrics(metrics)) if metrics.exists() else [],
        groups=groups,
        dense=list(_dense_parts(run)),
        dense_columns=COLUMNS,
        dense_cells=dense_cells,
        review=doubtful,
        instances=instance_rows([evaluation.instances]) if evaluation and evaluation.instances else [],
        objects=object_rows([evaluation.objects]) if evaluation and evaluation.objects else [],
        object_groups=gallery(run / f"{OBJECTS}.npz") if evaluation and evaluation.objects else [],
        environment=dict(_flatten(read_object(facts, "delete it"))) if facts.exists() else {},
        configuration=configuration,
        heat=", ".join(f"#{color.tobytes().hex()}" for color in HEAT_COLORS[::15]),
        red=f"rgb{PREDICTED}",
        green=f"rgb{TRUE}",
    )


def _sentence(evaluation: Evaluation) -> str:
    """What the headline says about the main method under the first protocol."""
    for cells in by_protocol(evaluation).values():
        return sentence(list(cells.values())[-1], evaluation.data.frames)
    return ""


def _clips_of(groups: Sequence[Group]) -> list[str]:
    return [case.clip for group in groups for case in group.cases]


def _next_step(run: Path, doubtful: Sequence[Group]) -> dict[str, str] | None:
    """The command after an evaluation, and why; None where there is no model to use."""
    if not (run / "model.json").is_file():
        return None
    if doubtful:
        return {
            "why": "check the most doubtful frames, and correct them.",
            "line": serve_command(run, _clips_of(doubtful)),
        }
    line = shlex.join(["colocam", "review", str(run)])
    return {"why": "find the frames to check first; then write this report again.", "line": line}


def _dense_parts(run: Path) -> Iterator[dict[str, Any]]:
    """The evaluations of whole shots: with tags alone, with a prior, and refined by a segmenter."""
    for name in DENSE:
        if (result := read_dense(run / f"{name}.json")) is not None:
            objects = object_rows([result.objects]) if result.objects else []
            groups = gallery(run / f"{name}.npz") + (gallery(run / f"{name}-{OBJECTS}.npz") if objects else [])
            yield {"id": name, "title": dense_title(result), "result": result, "groups": groups, "objects": objects}


def _points(value: float | None) -> str:
    """A difference in points, with its sign."""
    return "–" if value is None else f"{value:+.1f}".replace("-", "−")


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested mappings as (dotted name, text) pairs."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            yield from _flatten(item, f"{name}.")
        elif isinstance(item, list):
            yield name, ", ".join(map(str, item))
        else:
            yield name, str(item)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Frames by tag and class found: names of the columns, and rows of (tag, counts, share of the row in 0–1)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...]
    often: str

    @property
    def folded(self) -> bool:
        """Whether the table is too large for the first screen."""
        return len(self.columns) > MOST_CLASSES


def sentence(cell: CorLoc, frames: int) -> str:
    """How many boxes are right and which class is worst, e.g. "3 of 4 boxes are right; worst: rocket, 68 %."."""
    if cell.frames is None:
        told = f"{_percent(cell.average)} of the boxes are right, as a mean over classes"
    else:
        told = f"{round(cell.frames * frames / 100)} of {frames} boxes are right"
    known = {tag: value for tag, value in cell.classes.items() if value is not None}
    if len(set(known.values())) > 1:
        worst = min(known, key=lambda tag: known[tag])
        told += f"; worst: {worst}, {_percent(known[worst])}"
    return told + "."


def _percent(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def pictures(groups: Sequence[Group]) -> list[tuple[str, Case]]:
    """Good, typical and bad: the best of the best cases, the median, and the worst of the worst, by the main method."""
    found = []
    for name, word, place in (("best", "Good", 1.0), ("typical", "Typical", 0.5), ("worst", "Bad", 0.0)):
        cases = [case for group in groups if group.name == name for case in group.cases]
        ordered = sorted(
            (overlap, at) for at, case in enumerate(cases) if (overlap := case.images[-1].overlap) is not None
        )
        if ordered:
            found.append((word, cases[ordered[min(int(place * len(ordered)), len(ordered) - 1)][1]]))
    return found


def confusion_table(counts: Mapping[str, Mapping[str, int]]) -> Confusion | None:
    """Counts as a table, with the most frequent confusion in words; None without counts."""
    columns = tuple(dict.fromkeys((*counts, *(name for row in counts.values() for name in row))))
    rows = []
    for tag, row in counts.items():
        numbers = tuple(row.get(name, 0) for name in columns)
        rows.append((tag, numbers, tuple(number / max(1, sum(numbers)) for number in numbers)))
    wrong = [(n, tag, name) for tag, row in counts.items() for name, n in row.items() if name != tag and n]
    if not rows:
        return None
    if not wrong:
        return Confusion(columns, tuple(rows), "No frame was mistaken for another class.")
    number, tag, name = max(wrong, key=lambda one: one[0])
    often = f"Most frequent confusion: {tag} mistaken for {name}, in {number} of {sum(counts[tag].values())} frames."
    return Confusion(columns, tuple(rows), often)
