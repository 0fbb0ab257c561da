"""What happens in a run: the lines of metrics.jsonl, and the steps that are skipped since their loss is not finite.

Each line is a JSON object, of a training step or of a validation. It has ``phase``, ``event`` (``train`` or ``val``),
``epoch`` and ``step``. ``train`` lines add ``lr``, ``loss`` and the weighted loss terms; a number that is not finite is
null. ``val`` lines add the scores, and ``skipped``, the number of steps of the epoch whose loss was not finite, where
there were any. When a run is resumed, the lines of steps that it repeats are removed first, so that no step appears
twice.
"""

import json
import os
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, NonNegativeInt
from torch import Tensor

from colocam.errors import ColocamError
from colocam.utils.files import explain_os_errors

MOST_IN_A_ROW = 20
"""More skipped steps in a row than this stop the run, ..."""
MOST_OF_AN_EPOCH = 0.5
"""... and so does a larger share of an epoch's steps."""

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


class SkippedSteps(BaseModel):
    """The skipped steps of one epoch, as a checkpoint keeps them.

    Losses are copied from the device only when they are counted, so that a step does not wait for the device.

    Attributes:
        steps: how many were skipped.
        row: how many of them were the last ones.
        longest: most in a row.
        terms: how often each term was not finite.
    """

    model_config = ConfigDict(strict=True)

    steps: NonNegativeInt = 0
    row: NonNegativeInt = 0
    longest: NonNegativeInt = 0
    terms: dict[str, NonNegativeInt] = {}
    _pending: list[dict[str, Tensor]] = []

    def add(self, terms: dict[str, Tensor]) -> None:
        """Remember the ``loss`` of a step and its terms, detached scalars on any device."""
        self._pending.append(terms)

    def count(self) -> int:
        """Count the steps that were added, and return how many were skipped in all; waits for the device."""
        if self._pending:
            names = list(self._pending[0])
            finite = torch.stack([torch.stack(list(terms.values())) for terms in self._pending]).isfinite().tolist()
            self._pending.clear()
            for step in finite:
                broken = [name for name, good in zip(names, step, strict=True) if not good]
                self.row = self.row + 1 if "loss" in broken else 0
                self.steps += "loss" in broken
                self.longest = max(self.longest, self.row)
                for name in set(broken) - {"loss"}:
                    self.terms[name] = self.terms.get(name, 0) + 1
        return self.steps

    def check(self, phase: str, epoch: int, steps: int, advice: str) -> None:
        """Raise an error with ``advice`` if too many of the epoch's ``steps`` were skipped."""
        if self.count() > MOST_OF_AN_EPOCH * steps or self.longest > MOST_IN_A_ROW:
            raise ColocamError(f"{phase} stopped in epoch {epoch + 1}: {self} of {steps} steps: {advice}")

    def __str__(self) -> str:
        where = f" (term {', '.join(sorted(self.terms))})" if self.terms else ""
        return f"the loss was NaN or infinite{where} in {self.count()}"
