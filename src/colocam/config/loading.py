"""From YAML to a checked :class:`Config`, and back.

Presets are YAML files in ``presets/``; a user's file or ``--set a.b=c`` changes single keys of a preset. An unknown
key, a wrong type or an impossible value is refused with the nearest name.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from colocam.config.schema import Config, merge
from colocam.errors import ColocamError, suggest
from colocam.utils.files import write_text


def preset_names() -> list[str]:
    """Names of the shipped presets."""
    return sorted(
        Path(entry.name).stem
        for entry in (files("colocam") / "config" / "presets").iterdir()
        if entry.name.endswith(".yaml")
    )


def load_config(preset: str = "cpu", file: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """Read a preset, then a YAML file with some keys changed, then ``key.subkey=value`` overrides."""
    if preset not in preset_names():
        raise ColocamError(f"unknown preset '{preset}'{suggest(preset, preset_names())}")
    text = (files("colocam") / "config" / "presets" / f"{preset}.yaml").read_text(encoding="utf-8")
    values = parse_yaml(text, f"preset {preset}")
    origin = f"preset {preset}"
    if file is not None:
        if not file.is_file():
            raise ColocamError(f"no configuration file at {file}: give a YAML file")
        values, origin = _lay_over(values, parse_yaml(_text(file), str(file))), str(file)
    changes: dict[str, Any] = {}
    for override in overrides:
        changes = merge(changes, _parse_override(override))
    values = _lay_over(values, changes)
    # all at once: two overrides may be possible only together
    return validate(values, f"--set {' '.join(overrides)}" if overrides else origin)


def read_config(path: Path) -> Config:
    """The resolved configuration of a run."""
    return validate(parse_yaml(_text(path), str(path)), str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ColocamError(f"cannot read {path} as text ({error}): give a YAML file") from error


def write_config(path: Path, config: Config) -> None:
    """Write the resolved configuration, every key with its value."""
    write_text(path, yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def parse_yaml(text: str, origin: str) -> dict[str, Any]:
    """Read a YAML mapping; errors name ``origin``."""
    values = parse_value(text, origin)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ColocamError(f"{origin} must hold 'key: value' lines, not {type(values).__name__}")
    return values


def parse_value(text: str, origin: str) -> Any:  # noqa: ANN401 - whatever YAML can hold
    """Read any YAML value, with ``1e-3`` for a number and ``off`` for a word as YAML 1.2 has them."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - _Loader is a SafeLoader
    except yaml.YAMLError as error:
        raise ColocamError(f"{origin} is not valid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """PyYAML reads 1e-3 as a string, and yes, no, on and off as true and false; everybody else a number and words."""


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
        # pydantic's JSON mode is strict on types, but takes lists for tuples and strings for paths as YAML has them
        return Config.model_validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        raise ColocamError(f"{origin}: {_explain(error)}") from error
    except (TypeError, ValueError) as error:  # keys that are dates, values that contain themselves
        raise ColocamError(f"{origin} must hold plain keys and values: {error}") from error


def _explain(error: ValidationError) -> str:
    fault = error.errors()[0]
    key = ".".join(str(part) for part in fault["loc"])
    match fault["type"]:
        case "extra_forbidden":
            *parents, name = [str(part) for part in fault["loc"]]
            return f"unknown key '{key}'{suggest(name, _valid_keys(parents), '.'.join(parents))}"
        case "value_error":
            return str(fault["msg"]).removeprefix("Value error, ")
        case "literal_error":
            choices = [c.strip().strip("'") for c in fault["ctx"]["expected"].replace(" or ", ", ").split(",")]
            given = fault["input"]
            return f"'{key}' must be one of {', '.join(choices)}, not {given!r}{suggest(str(given), choices)}"
        case _:
            message = fault["msg"][0].lower() + fault["msg"][1:]
            return f"'{key}': {message}, not {fault['input']!r}"


def _valid_keys(parents: Sequence[str]) -> list[str]:
    section: type[BaseModel] = Config
    for parent in parents:
        annotation = section.model_fields[parent].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        section = annotation
    return list(section.model_fields)


def _parse_override(override: str) -> dict[str, Any]:
    key, separator, value = override.partition("=")
    if not separator or not key:
        raise ColocamError(f"--set {override}: write it as key.subkey=value")
    nested: Any = parse_value(value, f"--set {override}")
    for part in reversed(key.strip().split(".")):
        nested = {part: nested}
    assert isinstance(nested, dict)
    return nested


def _lay_over(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with ``changes``; the arguments of a network do not outlive a change of its name."""
    old, new = values.get("backbone"), changes.get("backbone")
    if isinstance(old, Mapping) and isinstance(new, Mapping) and new.get("name", old.get("name")) != old.get("name"):
        values = {**values, "backbone": {key: value for key, value in old.items() if key != "args"}}
    return merge(values, changes)
