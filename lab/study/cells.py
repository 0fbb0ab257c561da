"""The cells of a study: the units of work, each run once per seed, with a result of its own."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from colocam.cams import CAMS, ExternalCam
from colocam.config import Config
from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.evaluation.result import current_corloc, is_number, method_title, plain, read_metrics
from colocam.evaluation.run_evaluation import evaluate, measure, methods_of_run
from colocam.maps.mapper import Mapper, cam_mapper
from colocam.utils.files import write_json
from lab import measuring as timing
from lab.study.workplace import Lab, digest, stage1_config

Result = dict[str, Any]


class CannotRunError(ColocamError):
    """A cell needs something that is missing, such as weights; the study notes it and continues."""


class Cell:
    """A unit of work of a study, a frozen dataclass. Equal cells share their result, which is plain JSON."""

    __slots__ = ()
    title: ClassVar[str]
    """Name for messages and for the folder, with places for fields."""
    seeded: ClassVar[bool] = True
    """Whether the result depends on the seed."""

    @property
    def label(self) -> str:
        """The title with the values of the fields."""
        return self.title.format(cell=self)

    def identity(self, lab: Lab, seed: int) -> Result:
        """Everything that the result depends on, as plain JSON."""
        raise NotImplementedError

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Compute the result; ``folder`` belongs to this cell."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Method(Cell):
    """A CAM or a trained method, with ``key=value`` of the configuration."""

    method: str
    overrides: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The method and the changed keys, without their sections."""
        changes = (f"{key.rpartition('.')[2]}={value}" for key, _, value in (o.partition("=") for o in self.overrides))
        return ", ".join([method_title(self.method), *changes])


class Cam(Method):
    """Evaluate a CAM of stage 1's classifier: ``{"corloc": {protocol: …}}``."""

    __slots__ = ()

    def identity(self, lab: Lab, seed: int) -> Result:
        """Stage 1 and the method."""
        return {"cam": self.method, **lab.identity(stage1_config(lab.config(self.overrides, seed)))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002 - the cells' signature
        """Evaluate on the test frames."""
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config(self.overrides, seed)))
        found = measure(evaluation_set, methods_of_run(evaluation_set.run, [self.method])[self.method])
        return {"corloc": plain(found.corloc)}


@dataclass(frozen=True, slots=True)
class Trained(Method):
    """Train a decoder and evaluate it: ``{"corloc": {protocol: …}, "coloc": …}``.

    Attributes:
        draws: the seed samples the clips that are left out instead of seeding the training.
    """

    draws: bool = False

    def config(self, lab: Lab, seed: int) -> Config:
        """The configuration of the cell."""
        draw = (f"localizer.leave_out_draw={seed}",) if self.draws else ()
        return lab.config((*self.overrides, *draw), 0 if self.draws else seed, (self.method,))

    def identity(self, lab: Lab, seed: int) -> Result:
        """The configuration and the data."""
        return {"trained": self.method, **lab.identity(self.config(lab, seed))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Train on the shared stage 1 and evaluate on the test frames; ``folder`` becomes a run folder."""
        config = self.config(lab, seed)
        lab.train(config, folder, lab.stage1(config))
        found = evaluate(folder, lab.data.truth, cams=(), options=Options(lab.device))
        result = {
            "corloc": plain(found.methods[self.method]),
            "data": plain(found.data),
            "classification": found.classification and found.classification.accuracy,
            "coloc": _mean_term(folder / "metrics.jsonl", "coloc"),
        }
        tidy(folder, self.method, model=config == lab.config((), seed, (self.method,)))
        return result


def run_cell(lab: Lab, cell: Cell, seed: int) -> tuple[Path, Result]:
    """Folder and result of a cell; a finished cell is read, not run again.

    ``date``, ``device`` and the version of ``torch`` are added to the result.
    """
    seed = seed if cell.seeded else 0
    cells, name = lab.work / "cells", digest(cell.identity(lab, seed))
    # Another study may have started the same cell under another label.
    folder = next(cells.glob(f"*-{name}"), cells / f"{slug(cell.label)}-{name}")
    path = folder / "result.json"
    if not path.is_file():
        write_json(path, {**timing.conditions(cell.label, lab.where), **cell.run(lab, seed, folder)})
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is damaged ({error}): delete {folder} to run this cell again") from error
    if "corloc" in result:  # results of earlier versions have format 1
        result["corloc"] = {protocol: current_corloc(cell) for protocol, cell in result["corloc"].items()}
    return folder, result


def slug(name: str) -> str:
    """``name`` in characters that every file system accepts."""
    return "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in name.lower()).split())[:60]


def _mean_term(path: Path, term: str) -> float | None:
    """Mean of a weighted loss term over all training steps; None where the term was not used."""
    values = [float(record[term]) for record in read_metrics(path) if is_number(record.get(term))]
    return sum(values) / len(values) if values else None


def tidy(folder: Path, method: str, *, model: bool) -> None:
    """Remove the checkpoints of a finished run: those of hundreds of cells would fill a disk.

    The model is kept where no key was changed, since the study ``visual`` uses it.
    """
    shutil.rmtree(folder / "classifier", ignore_errors=True)
    shutil.rmtree(folder / method, ignore_errors=True)
    if not model:
        (folder / "model.json").unlink(missing_ok=True)
        (folder / "model.safetensors").unlink(missing_ok=True)


Label = Literal["given", "predicted", "average"]


@dataclass(frozen=True, slots=True)
class ClipRow(Cell):
    """Evaluate CLIP-ES: ``{"corloc": {protocol: …}}``, with a given class also ``ms``, the time of one frame.

    Attributes:
        label_from: class of the maps: the video's tag, the prediction of our classifier, or each tag in turn with
            CorLoc averaged.
        background: with the list of backgrounds.
        refine: refined by CLIP's attention.
    """

    label_from: Label = "given"
    background: bool = False
    refine: bool = False

    @property
    def seeded(self) -> bool:  # type: ignore[override]
        """Whether the classifier, which has a seed, chooses the class."""
        return self.label_from == "predicted"

    @property
    def label(self) -> str:
        """The method and its options."""
        return f"CLIP-ES, {self.label_from}{', background' * self.background}{', refined' * self.refine}"

    def identity(self, lab: Lab, seed: int) -> Result:
        """The path of CLIP, the options, and stage 1, whose classifier may choose the class."""
        clip = lab.config().clip
        return {
            "clip": clip.model and str(clip.model),
            "names": list(clip.names or ()),
            "row": [self.label_from, self.background, self.refine],
            **lab.identity(stage1_config(lab.config((), seed))),
        }

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002 - the cells' signature
        """Evaluate on the test frames."""
        entry, tags = CAMS["clip-es"], lab.catalogue.tags
        assert isinstance(entry, ExternalCam)
        try:
            config = lab.config((f"clip.background={self.background}", f"clip.refine={self.refine}"))
            clip_es = entry.open(config, tags, lab.where).maps
        except ColocamError as error:
            raise CannotRunError(f"CLIP-ES was not run: {error}") from error
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config((), seed)))
        run, side = evaluation_set.run, evaluation_set.run.config.frames.map_side
        classifier = run.classifier()
        if self.label_from == "average":
            each = [measure(evaluation_set, _constant(clip_es, c, side)).corloc for c in range(len(tags))]
            averages = {name: float(np.mean([corloc[name].average for corloc in each])) for name in each[0]}
            return {"corloc": {protocol: {"average": average} for protocol, average in averages.items()}}

        def maps(frames: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
            return clip_es(frames, classes if self.label_from == "given" else classifier.logits(frames).argmax(1))

        result: Result = {"corloc": plain(measure(evaluation_set, cam_mapper(maps, side)).corloc)}
        if self.label_from == "given":
            samples = evaluation_set.evaluated.samples
            frames, classes = next(samples.batches(run.config.frames.crop, run.device, batch=1))
            result["ms"] = timing.median_ms(lambda _: clip_es(frames, classes), run.device, 3 if lab.smoke else 20)
        return result


def _constant(clip_es: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], tag: int, size: int) -> Mapper:
    return cam_mapper(lambda frames, classes: clip_es(frames, torch.full_like(classes, tag)), size)
