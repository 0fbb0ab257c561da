"""Read JSON that may come from a stranger."""

import json
from typing import Any, NoReturn


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Read JSON; raise a ValueError where it is none, also for NaN, infinity and text that is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
