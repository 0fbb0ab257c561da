"""metrics.jsonl: one JSON object per line, for each training step and each validation of a run.

Each line has ``phase``, ``event`` (``train`` or ``val``), ``epoch`` and ``step``. ``train`` lines add ``lr``, ``loss``
and the weighted loss terms; a number that is not finite is null. ``val`` lines add the scores, and ``skipped``, the
number of steps of the epoch whose loss was not finite, where there were any. When a run is resumed, the lines of steps
that it repeats are removed first, so that no step appears twice.
"""

import json
import os
from pathlib import Path

from torch import Tensor

from colocam.utils.files import explain_os_errors

Value = float | int | str | None | Tensor


class Journal:
    """Collects lines, whose numbers may be tensors on the device, and writes them on :meth:`flush`.

    Args:
        path: the file; None where another process writes it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.length = 0
        """Length of the file in bytes up to the last line that was written."""
        self._waiting: list[dict[str, Value]] = []

    def add(self, phase: str, event: str, epoch: int, step: int, **values: Value) -> None:
        """Add one line; tensors are copied from the device later."""
        self._waiting.append({"phase": phase, "event": event, "epoch": epoch, "step": step, **values})

    def flush(self) -> int:
        """Append the collected lines and return the file's length in bytes, for the checkpoint."""
        if self.path is None:
            self._waiting.clear()
            return self.length
        lines = "".join(json.dumps({k: _plain(v) for k, v in line.items()}) + "\n" for line in self._waiting)
        with explain_os_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
            self.length = file.tell()
        self._waiting.clear()
        return self.length

    def rewind(self, length: int) -> None:
        """Truncate the file to ``length`` bytes: the lines after it belong to steps that will be repeated."""
        self._waiting.clear()
        self.length = length
        if self.path is None:
            return
        with explain_os_errors(self.path), self.path.open("ab") as file:
            file.truncate(min(length, file.tell()))  # truncating beyond the end would append zeros


def _plain(value: Value) -> float | int | str | None:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - NaN
    return value
