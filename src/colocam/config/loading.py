"""Read a :class:`Config` from YAML, and write it with a JSON schema, by which editors complete and check its keys.

Presets are YAML files in ``presets/``. A user's file or an override ``a.b=c`` changes single keys of a preset. Unknown
keys, wrong types and impossible values are refused with the nearest valid name.

Tests: tests/config/test_config.py.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from colocam.config.explain import explain
from colocam.config.merging import merge
from colocam.config.schema import Config
from colocam.errors import ColocamError, suggest
from colocam.utils.files import stored, write_text
from colocam.utils.progress import say

PRESETS = files("colocam") / "config" / "presets"
RENAMED = {"cpu": "demo"}
"""Names of presets up to 0.2.0."""
FILE = "config.schema.json"
"""Name of the schema beside a configuration."""
NAMED = f"# yaml-language-server: $schema={FILE}\n"
"""First line of a configuration, which editors read."""
REMOVED: dict[str, object] = {
    "classifier.ema": 0,
    "classifier.presence": "off",
    "localizer.ema": 0,
    "localizer.presence": "off",
}
"""Keys of earlier versions, with the value at which they had no effect: configurations of older runs hold them."""
LONGEST = 1 << 18
"""Characters of a configuration at most."""
DEEPEST = 20
"""Levels of a configuration at most."""


def schema_text() -> str:
    """The schema of :class:`colocam.config.Config` (draft 2020-12), as the text of a file.

    The text below each key in the class is its description, in one line.
    """
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema = draft | Config.model_json_schema() | {"title": "Configuration of colocam"}
    return json.dumps(schema, indent=1, ensure_ascii=False).replace(r"\n", " ") + "\n"


def preset_names() -> list[str]:
    """Names of the shipped presets."""
    return sorted(Path(one.name).stem for one in PRESETS.iterdir() if one.name.endswith(".yaml"))


def load_config(preset: str = "demo", file: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """Read a configuration: a preset, changed by a YAML file, then by overrides.

    Args:
        preset: one of :func:`preset_names`.
        file: YAML file with the keys to change.
        overrides: ``key.subkey=value`` each, with the value in YAML.
    """
    if preset in RENAMED:
        say(f"the preset '{preset}' is now called '{RENAMED[preset]}': it trains the demo's network from scratch")
        preset = RENAMED[preset]
    if preset not in preset_names():
        raise ColocamError(f"unknown preset '{preset}'{suggest(preset, preset_names())}")
    origin = f"preset {preset}"
    values = parse_yaml((PRESETS / f"{preset}.yaml").read_text(encoding="utf-8"), origin)
    if file is not None:
        if not stored(file).is_file():
            raise ColocamError(f"no configuration file at {file}: give a YAML file")
        values = _lay_over(values, parse_yaml(_text(file), str(file)))
        origin = str(file)
    changes: dict[str, Any] = {}
    for override in overrides:
        changes = merge(changes, _parse_override(override))
    values = _lay_over(values, changes)
    # validate all overrides at once: two of them may be valid only together
    return validate(values, f"`overrides` {' '.join(overrides)}" if overrides else origin)


def read_config(path: Path) -> Config:
    """Read the configuration that a run was trained with."""
    return validate(parse_yaml(_text(path), str(path)), str(path))


def _text(path: Path) -> str:
    try:
        return stored(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ColocamError(f"cannot read {path} as text ({error}): give a YAML file") from error


def write_config(path: Path, config: Config) -> None:
    """Write the configuration with the value of every key, and the schema that its first line names."""
    values = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_text(path, NAMED + values)
    write_text(path.with_name(FILE), schema_text())


def parse_yaml(text: str, origin: str) -> dict[str, Any]:
    """Read a YAML mapping; errors name ``origin``."""
    values = parse_value(text, origin)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ColocamError(f"{origin} must hold 'key: value' lines, not {type(values).__name__}")
    return values


def parse_value(text: str, origin: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    """Read any YAML value. ``1e-3`` is a number and ``off`` a string, as in YAML 1.2.

    Aliases are refused, and what is larger or deeper than any configuration: a few lines of aliases can stand for more
    values than fit into memory.
    """
    if len(text) > LONGEST:
        raise ColocamError(f"{origin} is longer than {LONGEST} characters, so it is no configuration: shorten it")
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - _Loader is a SafeLoader
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # numbers with too many digits, days that do not exist
        raise ColocamError(f"{origin} is not valid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """PyYAML follows YAML 1.1: 1e-3 is a string there, and yes, no, on and off are booleans. This follows YAML 1.2."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - PyYAML's own
        """Build a node, unless it is an alias or too deep."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not allowed: write the value out", mark)
        if self.depth >= DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nested more than {DEEPEST} levels deep", mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def validate(values: Mapping[str, Any], origin: str) -> Config:
    """Check ``values`` against the schema; the first fault becomes one line with its remedy."""
    try:
        # pydantic's JSON mode is strict about types, but accepts lists for tuples and strings for paths, as in YAML
        return Config.model_validate_json(json.dumps(_without_removed(values, origin), default=str), strict=True)
    except ValidationError as error:
        raise ColocamError(f"{origin}: {explain(error, Config)}") from error
    except (TypeError, ValueError) as error:  # keys that are dates, values that contain themselves
        raise ColocamError(f"{origin} must contain plain keys and values: {error}") from error


def _without_removed(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items()}
    for key, off in REMOVED.items():
        section, name = key.split(".")
        if isinstance(inner := kept.get(section), dict) and name in inner and (value := inner.pop(name)) != off:
            raise ColocamError(
                f"{origin}: '{key}' was removed after version 0.1.0: delete the key, whose value is {value!r}"
            )
    return kept


def _parse_override(override: str) -> dict[str, Any]:
    key, separator, value = override.partition("=")
    if not separator or not key:
        raise ColocamError(f"`overrides` {override}: write it as key.subkey=value")
    parts = key.strip().split(".")
    if len(parts) > DEEPEST:
        raise ColocamError(f"`overrides` {override[:80]}…: no key has more than {DEEPEST} parts")
    nested: Any = parse_value(value, f"`overrides` {override}")
    for part in reversed(parts):
        nested = {part: nested}
    assert isinstance(nested, dict)
    return nested


def _lay_over(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with ``changes``; another ``backbone.name`` drops the ``backbone.args`` of the old network."""
    old, new = values.get("backbone"), changes.get("backbone")
    if isinstance(old, Mapping) and isinstance(new, Mapping) and new.get("name", old.get("name")) != old.get("name"):
        values = {**values, "backbone": {key: value for key, value in old.items() if key != "args"}}
    return merge(values, changes)
