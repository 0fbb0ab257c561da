"""Read ``metrics.jsonl``, the numbers that training wrote step by step."""

import json
import math
from pathlib import Path
from typing import Any, TypeGuard


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of ``metrics.jsonl``; a line cut short by an interruption is skipped."""
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and {"phase", "event"} <= record.keys():
            records.append(record)
    return records


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value from JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
