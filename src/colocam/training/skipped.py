"""Count the steps whose loss is NaN or infinite, and stop a run in which they persist."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from colocam.errors import ColocamError

MOST_IN_A_ROW = 20
"""More skipped steps in a row than this stop the run, ..."""
MOST_OF_AN_EPOCH = 0.5
"""... and so does a larger share of an epoch's steps."""


class SkippedSteps:
    """The skipped steps of one epoch.

    Losses are copied from the device only when a count is asked for, so that a step does not wait for the device.

    Args:
        saved: what :meth:`save` returned in an interrupted run.
    """

    def __init__(self, saved: Mapping[str, Any] | None = None) -> None:
        saved = saved or {"steps": 0, "row": 0, "longest": 0, "terms": {}}
        self._steps, self._row, self._longest = (int(saved[name]) for name in ("steps", "row", "longest"))
        self._terms = Counter(saved["terms"])
        self._pending: list[dict[str, Tensor]] = []

    def add(self, terms: dict[str, Tensor]) -> None:
        """Remember the ``loss`` of a step and its terms, detached scalars on any device."""
        self._pending.append(terms)

    @property
    def steps(self) -> int:
        """How many steps were skipped; waits for the device."""
        if self._pending:
            names = list(self._pending[0])
            finite = torch.stack([torch.stack(list(terms.values())) for terms in self._pending]).isfinite().tolist()
            self._pending.clear()
            for step in finite:
                broken = [name for name, good in zip(names, step, strict=True) if not good]
                self._row = self._row + 1 if "loss" in broken else 0
                self._steps += "loss" in broken
                self._longest = max(self._longest, self._row)
                self._terms.update(name for name in broken if name != "loss")
        return self._steps

    def save(self) -> dict[str, Any]:
        """The counts as JSON values, for a checkpoint."""
        return {"steps": self.steps, "row": self._row, "longest": self._longest, "terms": dict(self._terms)}

    def check(self, phase: str, epoch: int, steps: int, advice: str) -> None:
        """Raise an error with ``advice`` if too many of the epoch's ``steps`` were skipped."""
        if self.steps > MOST_OF_AN_EPOCH * steps or self._longest > MOST_IN_A_ROW:
            raise ColocamError(f"{phase} stopped in epoch {epoch + 1}: {self} of {steps} steps: {advice}")

    def __str__(self) -> str:
        where = f" (term {', '.join(sorted(self._terms))})" if self._terms else ""
        return f"the loss was NaN or infinite{where} in {self.steps}"
