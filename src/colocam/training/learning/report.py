"""What was learned from corrections: the report, and the new run folder with the corrections in it.

Tests: tests/training/test_learn.py.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path

from colocam.config import write_config
from colocam.errors import ColocamError
from colocam.labels.labeled_videos import LeftOut
from colocam.models.model_file import Model, save_model
from colocam.run import Run
from colocam.training.learning.card import Agreement
from colocam.training.learning.frames import CorrectedFrames, History
from colocam.training.learning.proof import Proof
from colocam.utils.digests import file_digest
from colocam.utils.files import link, parse_json, write_json
from colocam.utils.tensors import save_checkpoint

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of learning: how well the model with it agrees with held-out corrections, and whether it was kept."""

    name: str
    agreement: Agreement
    kept: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of learning from corrections.

    Attributes:
        folder: the new run folder.
        stages: the parts in order; the first is the model before.
        frames: frames that a person corrected or accepted; those between them are learned from, but do not count.
        held_out: how many of them belong to held-out videos.
        left_out: corrections that were left out, and why.
        classes: that the model did not know before.
        proof: whether the new model is better.
    """

    folder: Path
    stages: list[Stage]
    frames: int
    held_out: int
    left_out: LeftOut
    classes: tuple[str, ...] = ()
    proof: Proof | None = None

    @property
    def kept(self) -> list[str]:
        """Names of the parts that were kept; none: the old model stays."""
        return [stage.name for stage in self.stages[1:] if stage.kept]

    def lines(self) -> list[str]:
        """The report as lines."""
        lines = self.left_out.lines()
        lines.append(f"{self.frames - self.held_out} corrections to learn from, {self.held_out} held out")
        if self.classes:
            lines.append(f"learned new classes ({', '.join(self.classes)}), each as one more output of the classifier")
        for stage in self.stages:
            agreement = stage.agreement
            parts = [] if isnan(agreement.iou) else [f"IoU {agreement.iou:.3f}", f"CorLoc {agreement.corloc:.1f} %"]
            parts += [] if isnan(agreement.presence_loss) else [f"presence loss {agreement.presence_loss:.3f}"]
            unmeasured = stage.name == "presence" and isnan(agreement.presence_loss)
            reason = "not measured" if unmeasured else "agrees less"
            verdict = "" if stage.kept else f": {reason}, not kept"
            lines.append(f"{stage.name:15} {', '.join(parts) or 'not measured'}{verdict}")
        if self.proof is not None:
            lines.append(self.proof.line())
        return lines


def stored_corrections(run: Path) -> list[Path]:
    """Corrections that a run has learned from, oldest first."""
    return sorted((run / "corrections").glob("*.csv"))


def read_history(run: Path) -> History:
    """The videos whose corrections a run has learned from, and those that it held out; none for an ordinary run."""
    path = run / "learning.json"
    if not path.is_file():
        return History()
    try:
        stored = parse_json(path.read_text(encoding="utf-8"))
        if "learnt" in stored:  # up to version 0.2.0
            stored["learned"] = stored["learnt"]
        return History(*(frozenset(map(str, stored[name]["videos"])) for name in ("learned", "held_out")))
    except (ValueError, LookupError, TypeError) as error:
        raise ColocamError(f"{path} is damaged: restore it, or learn from the run before it") from error


def write_run(
    run: Run, model: Model, learned: Learned, frames: CorrectedFrames, files: Sequence[Path], folder: Path
) -> None:
    """Write the new run into ``folder``: configuration, data, classifier, model, corrections and ``learning.json``."""
    method = run.config.methods[0]
    write_config(folder / "config.yaml", run.config.model_copy(update={"methods": (method,)}))
    for name in ("data.json", "environment.json"):
        if (run.folder / name).is_file():
            shutil.copyfile(run.folder / name, folder / name)
    if learned.classes:
        data = parse_json((folder / "data.json").read_text(encoding="utf-8"))
        write_json(folder / "data.json", {**data, "tags": list(run.catalogue.tags)})
    (folder / "classifier").mkdir()
    old = run.folder / "classifier"
    for file in old.iterdir() if old.is_dir() else ():
        if file.is_file() and not file.name.startswith("."):
            link(file, folder / "classifier" / file.name)
    # A ready model has its classifier in the model alone.
    if not old.is_dir() or learned.classes or ("head" in learned.kept and model.net.crop_head is None):
        for name in ("best", "cam"):
            (folder / "classifier" / f"{name}.json").unlink(missing_ok=True)
        save_checkpoint(folder / "classifier", "best", model.net.classifier.state_dict(), {"epoch": 0, "step": 0})
    copies = _copy(files, folder / "corrections")
    learned_videos, held_videos = (
        sorted({clip.clip.video for clip, _ in frames.part(part).samples.where()})
        for part in (~frames.held_out, frames.held_out)
    )
    write_json(
        folder / "learning.json",
        {
            "format": FORMAT,
            "from": {"run": str(run.folder.absolute()), "model": file_digest(run.folder / "model.safetensors")},
            "corrections": copies,
            "learned": {"frames": learned.frames - learned.held_out, "videos": learned_videos},
            "held_out": {"frames": learned.held_out, "videos": held_videos},
            "left_out": dict(learned.left_out),
            "stages": [_json(stage) for stage in learned.stages],
            "kept": learned.kept,
            "proof": None if learned.proof is None else learned.proof.as_json(),
        },
    )
    save_model(folder, Model(model.net.cpu(), model.card))


def _copy(files: Sequence[Path], folder: Path) -> list[dict[str, str]]:
    """Copy files of corrections, each content once, under numbered names; return their names and digests."""
    folder.mkdir()
    copies: dict[str, str] = {}
    for file in files:
        digest = file_digest(file)
        if digest not in copies:
            stem = file.stem.split("-", 1)[1] if file.stem[:4].isdigit() and "-" in file.stem else file.stem
            copies[digest] = f"{len(copies) + 1:04d}-{stem}{file.suffix.lower()}"
            shutil.copyfile(file, folder / copies[digest])
    return [{"file": name, "sha256": digest} for digest, name in copies.items()]


def _json(stage: Stage) -> dict[str, object]:
    numbers = {name: None if isnan(value) else value for name, value in asdict(stage.agreement).items()}
    return {"name": stage.name, **numbers, "kept": stage.kept, "seconds": stage.seconds}
