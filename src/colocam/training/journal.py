"""metrics.jsonl: one JSON object a line; what a resumed run repeats is cut off first, so no step stands there twice."""

import json
import os
from pathlib import Path

from torch import Tensor

from colocam.utils.files import explain_os_errors

Value = float | int | str | None | Tensor


class Journal:
    """Collects lines (numbers may still be tensors on the device) and writes them on :meth:`flush`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        """Bytes that belong to finished phases and to what was flushed since."""
        self._waiting: list[dict[str, Value]] = []

    def add(self, phase: str, event: str, epoch: int, step: int, **values: Value) -> None:
        """Remember one line; nothing is copied from the device yet."""
        self._waiting.append({"phase": phase, "event": event, "epoch": epoch, "step": step, **values})

    def flush(self) -> int:
        """Append what waits and return the file's length in bytes, for the checkpoint."""
        lines = "".join(json.dumps({k: _plain(v) for k, v in line.items()}) + "\n" for line in self._waiting)
        with explain_os_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
            self.length = file.tell()
        self._waiting.clear()
        return self.length

    def rewind(self, length: int) -> None:
        """Cut the file back to ``length`` bytes: what came after belongs to steps that will be run again."""
        self._waiting.clear()
        self.length = length
        with explain_os_errors(self.path), self.path.open("ab") as file:
            file.truncate(min(length, file.tell()))  # a file that someone cut shorter must not grow zeros


def _plain(value: Value) -> float | int | str | None:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - NaN
    return value
