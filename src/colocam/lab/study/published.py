"""The published numbers, from published.yaml."""

from functools import cache
from importlib.resources import files
from typing import Any

from colocam.config import parse_yaml


@cache
def _all() -> dict[str, Any]:
    text = (files("colocam") / "lab" / "study" / "published.yaml").read_text(encoding="utf-8")
    return parse_yaml(text, "published.yaml")


def published(study: str) -> dict[str, Any]:
    """Published data of a study: ``source`` (table or figure and its label), ``says``, and the numbers."""
    found: dict[str, Any] = _all()[study]
    return found
