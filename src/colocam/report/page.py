"""One self-contained HTML page per run, without scripts or external files."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from colocam.errors import ColocamError
from colocam.evaluation.metrics import PROTOCOLS
from colocam.evaluation.result import (
    OBJECTS,
    PLAIN,
    REFINED,
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
from colocam.report.first_screen import confusion_table, pictures, sentence, serve_command
from colocam.report.gallery import Group, gallery
from colocam.utils.files import write_text
from colocam.video.drawing import HEAT_COLOURS, PREDICTED, TRUE


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
    metrics, cases, review = run / "metrics.jsonl", run / "cases.npz", run / "review.npz"
    facts = run / "environment.json"
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
    groups = gallery(cases) if cases.exists() else []
    doubtful = gallery(review, "run 'colocam review' again") if review.exists() else []
    return templates.get_template("page.html").render(
        name=run.resolve().name,
        told=_sentence(evaluation) if evaluation else "",
        pictures=pictures(groups),
        confusion=confusion_table(evaluation.confusion or {}) if evaluation else None,
        next=_next_step(run, doubtful) if evaluation else None,
        serve=serve_command(run, doubtful),
        evaluate=f"colocam evaluate {shlex.quote(str(run))} --boxes TABLE",
        evaluation=evaluation,
        protocols=by_protocol(evaluation) if evaluation else {},
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
        object_groups=_object_cases(run / f"{OBJECTS}.npz") if evaluation and evaluation.objects else [],
        environment=dict(_flatten(read_object(facts, "delete it"))) if facts.exists() else {},
        configuration=configuration,
        heat=", ".join(f"#{colour.tobytes().hex()}" for colour in HEAT_COLOURS[::15]),
        red=f"rgb{PREDICTED}",
        green=f"rgb{TRUE}",
    )


def _sentence(evaluation: Evaluation) -> str:
    """What the headline says about the main method under the first protocol."""
    for cells in by_protocol(evaluation).values():
        return sentence(list(cells.values())[-1], evaluation.data.frames)
    return ""


def _next_step(run: Path, doubtful: Sequence[Group]) -> dict[str, str] | None:
    """The command after an evaluation, and why; None where there is no model to use."""
    if not (run / "model.json").is_file():
        return None
    if doubtful:
        return {"why": "check the most doubtful frames, and correct them.", "line": serve_command(run, doubtful)}
    line = shlex.join(["colocam", "review", str(run)])
    return {"why": "find the frames to check first; then write this report again.", "line": line}


def _dense_parts(run: Path) -> Iterator[dict[str, Any]]:
    """The evaluations of whole shots: with tags alone, and refined by a segmenter."""
    for name in (PLAIN, REFINED):
        result, cases = read_dense(run / f"{name}.json"), run / f"{name}.npz"
        if result is not None:
            groups = gallery(cases) if cases.exists() else []
            objects = object_rows([result.objects]) if result.objects else []
            groups += _object_cases(run / f"{name}-{OBJECTS}.npz") if objects else []
            yield {"id": name, "title": dense_title(result), "result": result, "groups": groups, "objects": objects}


def _object_cases(path: Path) -> list[Group]:
    return gallery(path) if path.exists() else []


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
