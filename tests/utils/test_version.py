"""The version: of the installed package, and of a source tree."""

import importlib
import importlib.metadata
import tomllib
from pathlib import Path

import colocam
from colocam.utils import extras as version

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_version_is_that_of_the_project(monkeypatch):
    stated = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    assert colocam.__version__ == stated

    def missing(_name):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert importlib.reload(version).__version__ == "0+source"
    monkeypatch.undo()
    assert importlib.reload(version).__version__ == stated


def test_the_command_prints_it(colocam):
    outcome = colocam("--version")
    assert (outcome.code, outcome.out) == (0, f"colocam {version.__version__}\n")
