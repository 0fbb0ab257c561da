"""Read JSON that may come from a stranger."""

import json
from collections.abc import Callable
from typing import Any, NoReturn


def parse_json(text: str | bytes, each: Callable[[dict[str, Any]], Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON; raise a ValueError where it is none, also for NaN, infinity and text that is nested too deeply.

    ``each`` gets every object as soon as it is read, and gives what stands for it.
    """
    try:
        return json.loads(text, parse_constant=_refuse, object_hook=each)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
