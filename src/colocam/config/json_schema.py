"""The JSON schema of the configuration: with it, editors complete keys, check values and show what each key does."""

import ast
import inspect
import json
import re
from functools import cache
from typing import Any

from colocam.config import schema

FILE = "config.schema.json"
"""Name of the schema beside a configuration."""
NAMED = f"# yaml-language-server: $schema={FILE}\n"
"""First line of a configuration, which editors read."""


def config_schema() -> dict[str, Any]:
    """The schema of :class:`colocam.config.Config` (draft 2020-12), with the text below each key as its description."""
    found: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema.Config.model_json_schema(),
        "title": "Configuration of colocam",
    }
    texts = _descriptions()
    for name, section in {"Config": found, **found["$defs"]}.items():
        for key, field in section["properties"].items():
            for owner in getattr(schema, name).__mro__:
                if text := texts.get(owner.__name__, {}).get(key):
                    field["description"] = text
                    break
    return found


def schema_text() -> str:
    """:func:`config_schema` as the text of a file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    """Class → key → the text below it. Python does not keep it, so that it is read from the source."""
    texts: dict[str, dict[str, str]] = {}
    for section in ast.parse(inspect.getsource(schema)).body:
        if isinstance(section, ast.ClassDef):
            own = texts.setdefault(section.name, {})
            for key, text in zip(section.body, section.body[1:], strict=False):
                if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and _is_text(text):
                    own[key.target.id] = re.sub(r"\s+", " ", ast.literal_eval(text.value))  # type: ignore[attr-defined]
    return texts


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
