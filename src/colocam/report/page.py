"""One self-contained HTML page per run: no script, no network, everything a reader needs inside the file."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.colors import to_hex

from colocam.drawing.overlay import HEAT_COLOURS, PREDICTED, TRUE
from colocam.errors import ColocamError
from colocam.report.curves import read_metrics, training_curves
from colocam.report.doubtful import doubtful
from colocam.report.evaluation_rows import Protocol, Result, estimate, gain, instance_rows, protocols_of
from colocam.report.gallery import gallery
from colocam.report.template import environment
from colocam.utils.files import write_text


def write_report(run: Path) -> Path:
    """Write ``run``/report/index.html from what the run folder holds, and give its path.

    Only config.yaml must be there; a run without boxes has no evaluation, an unfinished one only some curves.
    """
    target = run / "report" / "index.html"
    write_text(target, render(run))
    return target


def render(run: Path) -> str:
    """The report of ``run`` as HTML."""
    try:
        configuration = (run / "config.yaml").read_text(encoding="utf-8")
    except OSError as error:
        raise ColocamError(f"{run} is not a run folder: it has no config.yaml that can be read") from error
    evaluation = _read_json(run / "evaluation.json")
    protocols = protocols_of(evaluation)
    metrics, cases, review = run / "metrics.jsonl", run / "cases.npz", run / "review.npz"
    templates = environment("report")
    templates.filters["points"] = _points
    return templates.get_template("page.html").render(
        name=run.resolve().name,
        protocols=protocols,
        headline=_headline(protocols),
        gains={protocol.name: gain(protocol.results) for protocol in protocols},
        classification=estimate(evaluation.get("classification"), "accuracy"),
        accuracies=_accuracies(evaluation),
        data=evaluation.get("data", {}),
        summary=dict(_flatten(evaluation.get("data", {}))),
        phases=training_curves(read_metrics(metrics)) if metrics.exists() else [],
        groups=gallery(cases) if cases.exists() else [],
        doubtful=doubtful(review) if review.exists() else [],
        instances=instance_rows(evaluation),
        environment=dict(_flatten(_read_json(run / "environment.json"))),
        configuration=configuration,
        heat=", ".join(to_hex(HEAT_COLOURS[i] / 255) for i in range(0, 256, 15)),
        red=f"rgb{PREDICTED}",
        green=f"rgb{TRUE}",
    )


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where the file is missing."""
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is not valid JSON ({error}): evaluate the run again") from error
    if not isinstance(value, dict):
        raise ColocamError(f"{path} holds no JSON object: evaluate the run again")
    return value


def _headline(protocols: list[Protocol]) -> dict[str, Any] | None:
    """The run in three numbers, under the strictest protocol that was measured."""
    if not protocols:
        return None
    first: Protocol = protocols[0]
    ours: Result = first.results[-1]
    baseline = first.results[0] if len(first.results) > 1 else None
    return {"protocol": first, "ours": ours, "baseline": baseline, "gain": gain(first.results)}


def _accuracies(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Classification accuracy per class."""
    classification = evaluation.get("classification")
    each = classification.get("per_class", {}) if isinstance(classification, Mapping) else {}
    return {tag: estimate(value) for tag, value in each.items()}


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
