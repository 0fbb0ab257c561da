"""The cells of a study: the units of work, each run once per seed, with a result of its own."""

import datetime as dt
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch

from colocam.config import Config
from colocam.errors import ColocamError
from colocam.evaluation.metrics import PROTOCOLS, CorLoc
from colocam.evaluation.result import current_corloc, is_number, method_title, plain, read_metrics
from colocam.evaluation.run_evaluation import evaluate, measure, methods_of_run
from colocam.maps.mapper import Mapper, cam_mapper
from colocam.utils.extras import install_extra
from colocam.utils.files import write_json
from lab import measuring as timing
from lab.study.workplace import Lab, device_name, digest, stage1_config

Result = dict[str, Any]


class CannotRunError(ColocamError):
    """A cell needs something that is missing, such as weights; the study notes it and continues."""


class Cell(Protocol):
    """A unit of work of a study. Equal cells share their result, which is plain JSON."""

    @property
    def label(self) -> str:
        """Name for messages and for the folder."""

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed."""

    def identity(self, lab: Lab, seed: int) -> Result:
        """Everything that the result depends on, as plain JSON."""

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Compute the result; ``folder`` belongs to this cell."""


@dataclass(frozen=True, slots=True)
class Cam:
    """Evaluate a CAM of stage 1's classifier: ``{"corloc": {protocol: …}}``."""

    name: str = "layercam"
    overrides: tuple[str, ...] = ()

    seeded = True

    @property
    def label(self) -> str:
        """The method and the changed keys."""
        return label(method_title(self.name), self.overrides)

    def identity(self, lab: Lab, seed: int) -> Result:
        """Stage 1 and the method."""
        return {"cam": self.name, **lab.identity(stage1_config(lab.config(self.overrides, seed)))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002 - the cells' signature
        """Evaluate on the test frames."""
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config(self.overrides, seed)))
        found = measure(evaluation_set, methods_of_run(evaluation_set.run, [self.name])[self.name])
        return {"corloc": plain(found.corloc)}


@dataclass(frozen=True, slots=True)
class Trained:
    """Train a decoder and evaluate it: ``{"corloc": {protocol: …}, "coloc": …}``.

    Attributes:
        method: the trained method.
        overrides: ``key=value`` of the configuration.
        draws: the seed samples the clips that are left out instead of seeding the training.
    """

    method: str = "colocam"
    overrides: tuple[str, ...] = ()
    draws: bool = False

    seeded = True

    @property
    def label(self) -> str:
        """The method and the changed keys."""
        return label(method_title(self.method), self.overrides)

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
        found = evaluate(folder, lab.data.truth, cams=(), device=lab.device)
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
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        conditions = {"date": today, "device": device_name(lab.where), "torch": torch.__version__}
        write_json(path, {**conditions, **cell.run(lab, seed, folder)})
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ColocamError(f"{path} is damaged ({error}): delete {folder} to run this cell again") from error
    if "corloc" in result:  # results of earlier versions have format 1
        result["corloc"] = {protocol: current_corloc(cell) for protocol, cell in result["corloc"].items()}
    return folder, result


def label(name: str, overrides: tuple[str, ...]) -> str:
    """``name`` with the changed keys, without their sections."""
    changes = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, _, value in (o.partition("=") for o in overrides))
    return f"{name}, {changes}" if changes else name


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
class ClipRow:
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
    def seeded(self) -> bool:
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
        clip = lab.config().clip
        if clip.model is None:
            raise CannotRunError(
                "CLIP-ES was not run: it needs a checkpoint, --set clip.model=FOLDER (docs/guide/clip-es.md)"
            )
        try:
            from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise CannotRunError(f"CLIP-ES was not run: {install_extra('clip')}") from error
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config((), seed)))
        tags, sizes = evaluation_set.run.catalogue.tags, evaluation_set.run.config.frames
        size, side = sizes.crop, sizes.map_side
        clip_es = ClipES.load(
            clip.model,
            clip.names or tags,
            background=BACKGROUND if self.background else (),
            refine=Refinement() if self.refine else None,
            device=evaluation_set.run.device,
        )
        if self.label_from == "average":
            constant = [measure(evaluation_set, _constant(clip_es, c, side)).corloc for c in range(len(tags))]
            return {"corloc": _mean_over(constant)}
        classifier = evaluation_set.run.classifier()

        def maps(frames: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
            return clip_es(frames, classes if self.label_from == "given" else classifier.logits(frames).argmax(1))

        result: Result = {"corloc": plain(measure(evaluation_set, cam_mapper(maps, side)).corloc)}
        if self.label_from == "given":
            frames, classes = next(evaluation_set.evaluated.samples.batches(size, evaluation_set.run.device, batch=1))
            repeats = 3 if lab.smoke else 20
            result["ms"] = timing.median_ms(lambda _: clip_es(frames, classes), evaluation_set.run.device, repeats)
        return result


def _constant(clip_es: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], tag: int, size: int) -> Mapper:
    return cam_mapper(lambda frames, classes: clip_es(frames, torch.full_like(classes, tag)), size)


def _mean_over(results: list[dict[str, CorLoc]]) -> Result:
    """Mean of CorLoc over the constant classes, per protocol."""
    if not results:
        raise ColocamError("CLIP-ES needs at least one tag")
    return {
        protocol: {"average": float(np.mean([result[protocol].average for result in results]))}
        for protocol in PROTOCOLS
        if protocol in results[0]
    }
