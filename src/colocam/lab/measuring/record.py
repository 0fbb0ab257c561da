"""The conditions of a benchmark, and its JSON file."""

import datetime as dt
import platform
from pathlib import Path
from typing import Any

import torch

from colocam.utils.files import write_json


def conditions(what: str, device: torch.device) -> dict[str, Any]:
    """What was measured, device, version of torch, and date: the first entries of a result."""
    return {
        "what": what,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU",
        "torch": torch.__version__,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }


def headline(result: dict[str, Any]) -> str:
    """The conditions in one line."""
    return f"{result['what']}; {result['device']}, torch {result['torch']}, {result['date']}"


def keep(result: dict[str, Any], json_path: Path | None) -> dict[str, Any]:
    """Write the result to ``json_path``, if given, and return it."""
    if json_path is not None:
        write_json(json_path, result)
    return result
