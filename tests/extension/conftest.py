"""What a user does with a run, from training to exported labels, for each thing that was added from outside."""

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from colocam import evaluate
from colocam.inference.localize import localize_file
from colocam.labels import export
from colocam.report import write_report


class Used(NamedTuple):
    """What came out of a run."""

    evaluation: dict
    report: str
    labels: list[dict]


@pytest.fixture
def fit(train_into, tmp_path):
    """``fit(override, …, terms=…)`` trains the tiny run and returns its folder."""
    return partial(train_into, tmp_path / "run")


@pytest.fixture
def use(collection, tmp_path):
    """``use(run)`` evaluates and reports it and exports the labels that it gives a video."""

    def walk(run: Path) -> Used:
        evaluate(run, collection.truth)
        page = write_report(run)
        _, table = localize_file(run, collection.videos / "cat" / "test-0.mp4", tmp_path / "localized")
        export([table], "coco", tmp_path / "labels")
        labels = tmp_path / "labels" / "annotations" / "instances_default.json"
        return Used(
            json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["methods"],
            page.read_text(encoding="utf-8"),
            json.loads(labels.read_text(encoding="utf-8"))["annotations"],
        )

    return walk


@pytest.fixture
def journal():
    """``journal(run, phase, event)`` gives the lines of metrics.jsonl."""

    def lines(run: Path, phase: str, event: str = "train") -> list[dict]:
        found = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        return [line for line in found if line["phase"] == phase and line["event"] == event]

    return lines
