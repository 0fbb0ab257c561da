"""One self-contained HTML page per run, without scripts or external files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from colocam.errors import ColocamError
from colocam.evaluation.result import PLAIN, REFINED, read_dense, read_evaluation, read_metrics
from colocam.report.curves import training_curves
from colocam.report.evaluation_tables import (
    COLUMNS,
    Estimate,
    Protocol,
    Result,
    dense_cells,
    dense_title,
    estimate,
    gain,
    instance_rows,
    protocols_of,
    refined_rows,
)
from colocam.report.gallery import doubtful, gallery
from colocam.utils.files import parse_json, write_text
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
    protocols = protocols_of(evaluation) if evaluation else []
    classification = evaluation.classification if evaluation else None
    metrics, cases, review = run / "metrics.jsonl", run / "cases.npz", run / "review.npz"
    templates = environment("report")
    templates.filters["points"] = _points
    return templates.get_template("page.html").render(
        name=run.resolve().name,
        protocols=protocols,
        headline=_headline(protocols),
        gains={protocol.name: gain(protocol.results) for protocol in protocols},
        classification=estimate(classification),
        accuracies={tag: Estimate(value) for tag, value in (classification.classes if classification else {}).items()},
        data=evaluation.data if evaluation else None,
        summary=dict(_flatten(evaluation.data.to_json())) if evaluation else {},
        phases=training_curves(read_metrics(metrics)) if metrics.exists() else [],
        groups=gallery(cases) if cases.exists() else [],
        dense=list(_dense_parts(run)),
        dense_columns=COLUMNS,
        dense_cells=dense_cells,
        refined=refined_rows(evaluation) if evaluation else [],
        doubtful=doubtful(review) if review.exists() else [],
        instances=instance_rows([evaluation.instances]) if evaluation and evaluation.instances else [],
        environment=dict(_flatten(_read_json(run / "environment.json"))),
        configuration=configuration,
        heat=", ".join(f"#{colour.tobytes().hex()}" for colour in HEAT_COLOURS[::15]),
        red=f"rgb{PREDICTED}",
        green=f"rgb{TRUE}",
    )


def _dense_parts(run: Path) -> Iterator[dict[str, Any]]:
    """The evaluations of whole shots: with tags alone, and refined by a segmenter."""
    for name in (PLAIN, REFINED):
        result, cases = read_dense(run / f"{name}.json"), run / f"{name}.npz"
        if result is not None:
            groups = gallery(cases) if cases.exists() else []
            yield {"id": name, "title": dense_title(result), "result": result, "groups": groups}


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where the file is missing."""
    if not path.exists():
        return {}
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is not valid JSON ({error}): delete it") from error
    if not isinstance(value, dict):
        raise ColocamError(f"{path} holds no JSON object: delete it")
    return value


def _headline(protocols: list[Protocol]) -> dict[str, Any] | None:
    """The main method, its baseline and its gain under the first protocol that was evaluated."""
    if not protocols:
        return None
    first: Protocol = protocols[0]
    ours: Result = first.results[-1]
    baseline = first.results[0] if len(first.results) > 1 else None
    return {"protocol": first, "ours": ours, "baseline": baseline, "gain": gain(first.results)}


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
