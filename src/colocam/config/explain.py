"""What is wrong with a configuration, in one line with the nearest valid name.

Tests: tests/config/test_config.py.
"""

from collections.abc import Collection, Sequence

from pydantic import BaseModel, ValidationError

from colocam.errors import suggest
from colocam.utils.extensions import REGISTRIES, unknown

MOST = 200
"""Characters of a refused value that are shown."""


def explain(error: ValidationError, section: type[BaseModel]) -> str:
    """Describe the first fault of values that ``section`` refused."""
    fault = error.errors()[0]
    key = ".".join(str(part) for part in fault["loc"])
    match fault["type"]:
        case "extra_forbidden":
            *parents, name = [str(part) for part in fault["loc"]]
            return f"unknown key '{key}'{suggest(name, _valid_keys(section, parents), '.'.join(parents))}"
        case "value_error":
            return str(fault["msg"]).removeprefix("Value error, ")
        case "literal_error":
            choices = [c.strip().strip("'") for c in fault["ctx"]["expected"].replace(" or ", ", ").split(",")]
            value = fault["input"]
            return (
                f"'{key}' must be one of {', '.join(choices)}, not {_shown(value)}{suggest(str(value)[:MOST], choices)}"
            )
        case _:
            message = fault["msg"][0].lower() + fault["msg"][1:]
            return f"'{key}': {message}, not {_shown(fault['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST else f"{text[:MOST]}…"


def _valid_keys(section: type[BaseModel], parents: Sequence[str]) -> list[str]:
    for parent in parents:
        annotation = section.model_fields[parent].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        section = annotation
    return list(section.model_fields)


def require_registered(
    key: str, name: str, registry: str, shipped: Collection[str] = (), without: Collection[str] = ()
) -> str:
    """``name`` if it is one of ``shipped`` or in ``registry``, but not in ``without``; otherwise a ValueError."""
    known = [other for other in dict.fromkeys((*shipped, *REGISTRIES.get(registry, ()))) if other not in without]
    if name not in known:
        raise ValueError(f"'{key}' names '{name}', which is not in {registry}{unknown(name, known)}")
    return name
