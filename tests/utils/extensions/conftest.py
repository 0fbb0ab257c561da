"""Runs with something that was added from outside, and what they note while they train."""

import json
from functools import partial
from pathlib import Path

import pytest


@pytest.fixture
def fit(train_into, tmp_path):
    """``fit(override, …, terms=…)`` trains the tiny run and returns its folder."""
    return partial(train_into, tmp_path / "run")


@pytest.fixture
def journal():
    """``journal(run, phase, event)`` gives the lines of metrics.jsonl."""

    def lines(run: Path, phase: str, event: str = "train") -> list[dict]:
        found = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        return [line for line in found if line["phase"] == phase and line["event"] == event]

    return lines
