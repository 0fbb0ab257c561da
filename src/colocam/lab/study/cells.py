"""The cells of a study: the smallest things that are run, each once for each seed, each with a result of its own."""

import datetime as dt
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from colocam.config import Config
from colocam.errors import ColocamError
from colocam.evaluation.run_evaluation import evaluate, measure, methods_of_run
from colocam.lab.study.workplace import Lab, device_name, digest, stage1_config
from colocam.report.curves import read_metrics
from colocam.report.evaluation_rows import is_number, method_title
from colocam.utils.files import write_json

Result = dict[str, Any]


class CannotRunError(ColocamError):
    """A cell needs something that is not here, such as weights; the table says so in words and the study goes on."""


class Cell(Protocol):
    """What a study runs; equal cells are the same cell. A result is plain JSON."""

    @property
    def label(self) -> str:
        """A name for people, and for the folder."""

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed."""

    def identity(self, lab: Lab, seed: int) -> Result:
        """All that the result depends on, as plain JSON."""

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Do the work; ``folder`` is the cell's own."""


@dataclass(frozen=True, slots=True)
class Cam:
    """A class activation map of stage 1's classifier, measured: ``{"corloc": {protocol: …}}``."""

    name: str = "layercam"
    overrides: tuple[str, ...] = ()

    seeded = True

    @property
    def label(self) -> str:
        """The method and what is changed."""
        return label(method_title(self.name), self.overrides)

    def identity(self, lab: Lab, seed: int) -> Result:
        """Stage 1 and the method."""
        return {"cam": self.name, **lab.identity(stage1_config(lab.config(self.overrides, seed)))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002 - the cells' signature
        """Measure on the test frames."""
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config(self.overrides, seed)))
        _, _, corloc = measure(evaluation_set, methods_of_run(evaluation_set.run, [self.name])[self.name])
        return {"corloc": corloc}


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained decoder, measured: ``{"corloc": {protocol: …}, "coloc": …}``.

    Attributes:
        method: what is trained.
        overrides: ``key=value`` of the configuration.
        draws: the seed draws which clips are left out instead of seeding the training.
    """

    method: str = "colocam"
    overrides: tuple[str, ...] = ()
    draws: bool = False

    seeded = True

    @property
    def label(self) -> str:
        """The method and what is changed."""
        return label(method_title(self.method), self.overrides)

    def config(self, lab: Lab, seed: int) -> Config:
        """The cell's whole configuration."""
        draw = (f"localizer.leave_out_draw={seed}",) if self.draws else ()
        return lab.config((*self.overrides, *draw), 0 if self.draws else seed, (self.method,))

    def identity(self, lab: Lab, seed: int) -> Result:
        """The whole configuration and the data."""
        return {"trained": self.method, **lab.identity(self.config(lab, seed))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Train on the shared stage 1 and measure on the test frames; ``folder`` becomes a run folder."""
        config = self.config(lab, seed)
        lab.train(config, folder, lab.stage1(config))
        found = evaluate(folder, lab.data.truth, cams=(), device=lab.device)
        result = {
            "corloc": found[self.method],
            "data": found["data"],
            "classification": found["classification"]["accuracy"],
            "coloc": _mean_term(folder / "metrics.jsonl", "coloc"),
        }
        _tidy(folder, self.method, model=config == lab.config((), seed, (self.method,)))
        return result


def run_cell(lab: Lab, cell: Cell, seed: int) -> tuple[Path, Result]:
    """The folder and the result of a cell; what was finished once is read, never run again.

    To the cell's own result come ``date``, ``device`` and the version of ``torch``.
    """
    seed = seed if cell.seeded else 0
    cells, name = lab.work / "cells", digest(cell.identity(lab, seed))
    # another study may have begun the same cell under another label
    folder = next(cells.glob(f"*-{name}"), cells / f"{slug(cell.label)}-{name}")
    path = folder / "result.json"
    if not path.is_file():
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        conditions = {"date": today, "device": device_name(lab.where), "torch": torch.__version__}
        write_json(path, {**conditions, **cell.run(lab, seed, folder)})
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is damaged ({error}): delete {folder} to run this cell again") from error
    return folder, result


def label(name: str, overrides: tuple[str, ...]) -> str:
    """``name`` with the last parts of the changed keys."""
    changes = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, _, value in (o.partition("=") for o in overrides))
    return f"{name}, {changes}" if changes else name


def slug(name: str) -> str:
    """``name`` in characters that every file system takes."""
    return "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in name.lower()).split())[:60]


def _mean_term(path: Path, term: str) -> float | None:
    """Mean of a loss term over all training steps, as it entered the sum; None where it did not."""
    values = [float(record[term]) for record in read_metrics(path) if is_number(record.get(term))]
    return sum(values) / len(values) if values else None


def _tidy(folder: Path, method: str, *, model: bool) -> None:
    """Remove what only an unfinished run needs; hundreds of cells would fill a disk with their weights.

    The model itself is kept where nothing was changed: it may be looked at.
    """
    shutil.rmtree(folder / "classifier", ignore_errors=True)
    shutil.rmtree(folder / method, ignore_errors=True)
    if not model:
        (folder / "model.json").unlink(missing_ok=True)
        (folder / "model.safetensors").unlink(missing_ok=True)
