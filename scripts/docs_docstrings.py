"""Docstrings as Markdown for the API reference: examples become code blocks, roles become code.

``zensical.toml`` names this extension of griffe, the package that reads docstrings for the site.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*\S.*\n?)*)+", re.MULTILINE)
ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")


class MarkdownDocstrings(griffe.Extension):
    """Rewrite each docstring when its object is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401 - of the base class
        """Rewrite one docstring."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with fenced examples, and without roles of reStructuredText."""
    return EXAMPLE.sub(_fenced, ROLE.sub(r"`\1`", text))


def _fenced(example: re.Match[str]) -> str:
    lines = [re.sub(r"\s*# doctest: .*", "", line) for line in example.group().rstrip().splitlines()]
    indent = re.match(" *", lines[0]).group()
    return "\n".join([f"{indent}```pycon", *lines, f"{indent}```", ""])
