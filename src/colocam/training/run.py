"""A whole run: videos and tags in, a run folder with a model out. Every part is skipped where it is already done."""

import importlib.metadata
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from colocam.cams.store import open_cams
from colocam.config import Config, Method, load_config, read_config, write_config
from colocam.data.cache import cache_frames
from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.samples import labelled_samples, scaled_boxes, spread_samples
from colocam.data.store import CachedClip
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError, InterruptedRunError
from colocam.files import explain_os_errors, write_json
from colocam.interrupt import graceful_stop
from colocam.models import Classifier, LocalizerNet
from colocam.models.store import Card, Model, save_model
from colocam.progress import say
from colocam.training.checkpoint import load_checkpoint
from colocam.training.journal import Journal
from colocam.training.stage1 import train_classifier
from colocam.training.stage2 import train_localizer
from colocam.training.validation import Judge
from colocam.types import Clip, Split


@dataclass(frozen=True, slots=True)
class Run:
    """An open run folder: its configuration, its data and where it computes."""

    folder: Path
    config: Config
    catalogue: Catalogue
    frames: Path
    device: torch.device

    def clips(self, *splits: Split) -> list[CachedClip]:
        """The readable clips of some splits, decoded on first use."""
        wanted = [clip for clip in self.catalogue.clips if clip.split in splits]
        return cache_frames(wanted, self.frames, size=self.config.frames.resize, max_frames=self.config.frames.per_clip)

    def classifier(self, name: str = "best") -> Classifier:
        """The trained classifier; ``cam`` is the checkpoint that the CAMs come from, where boxes chose another."""
        saved = load_checkpoint(self.folder / "classifier", name) or load_checkpoint(self.folder / "classifier", "best")
        if saved is None:
            raise ColocamError(f"no trained classifier in {self.folder}: finish 'colocam train' first")
        classifier = Classifier(untrained(self.config), len(self.catalogue.tags))
        classifier.load_state_dict(saved[0])
        return classifier.to(self.device).eval()

    def model_folder(self, method: Method) -> Path:
        """Where the model of a method lies: the run folder itself for the first method."""
        return self.folder if method == self.config.methods[0] else self.folder / method


def train(
    source: str | Path,
    out: str | Path,
    config: Config | None = None,
    *,
    boxes: str | Path | None = None,
    frames: str | Path | None = None,
    device: str | None = None,
) -> Path:
    """Train both stages on tagged videos and return the run folder; an interrupted run is continued.

    Args:
        source: folder ``VIDEOS/<tag>/…`` or a CSV/parquet manifest, see :func:`read_catalogue`.
        out: the run folder.
        config: what to train; the preset ``cpu`` if None.
        boxes: a table of true boxes; those of validation videos then choose the epochs and the threshold. Without it
            they are chosen from tags and maps alone.
        frames: folder of the frame cache, ``out/frames`` if None; runs on the same videos may share it.
        device: ``cpu`` or ``cuda``; the GPU if there is one.
    """
    config = config or load_config()
    truth = read_truth(Path(boxes)) if boxes is not None else None
    catalogue = read_catalogue(Path(source), val_fraction=config.frames.val_fraction, seed=config.seed)
    run = _open(Path(out), config, catalogue, Path(frames) if frames else Path(out) / "frames", device, truth is not None)
    try:
        with graceful_stop():
            _train(run, truth)
    except (InterruptedRunError, KeyboardInterrupt) as stop:
        raise InterruptedRunError(f"{stop or 'stopped'}: run the same command again to continue {run.folder}") from stop
    return run.folder


def open_run(folder: str | Path, device: str | None = None) -> Run:
    """Open a run folder that ``train`` made."""
    folder = Path(folder)
    if not (folder / "config.yaml").is_file() or not (folder / "data.json").is_file():
        raise ColocamError(f"{folder} is not a run folder (config.yaml or data.json is missing): give one 'colocam train' made")
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    clips = tuple(
        Clip(**{**entry, "path": Path(entry["path"]), "frames": tuple(Path(p) for p in entry["frames"])})
        for entry in data["clips"]
    )
    catalogue = Catalogue(clips, tuple(data["tags"]))
    return Run(folder, read_config(folder / "config.yaml"), catalogue, Path(data["frames"]), _device(device))


def _open(
    out: Path, config: Config, catalogue: Catalogue, frames: Path, device: str | None, boxed: bool
) -> Run:
    """Make the run folder, or check that the one there is of this configuration and these data."""
    described = {
        "tags": list(catalogue.tags),
        "boxes": boxed,
        "frames": str(frames.absolute()),
        "clips": [
            {
                "name": clip.name,
                "tag": clip.tag,
                "split": clip.split,
                "path": str(clip.path.absolute()),
                "video": clip.video,
                "start": clip.start,
                "end": clip.end,
                "frames": [str(path.absolute()) for path in clip.frames],
            }
            for clip in catalogue.clips
        ],
    }
    if (out / "config.yaml").is_file() and (out / "data.json").is_file():
        if (changed := _difference(read_config(out / "config.yaml"), config)) is not None:
            raise ColocamError(f"{out} holds a run of another configuration ({changed}): choose another folder or delete it")
        if json.loads((out / "data.json").read_text(encoding="utf-8")) != described:
            raise ColocamError(f"{out} holds a run on other videos or boxes: choose another folder or delete it")
    else:
        with explain_os_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            if any(out.iterdir()):
                raise ColocamError(f"{out} is not empty and not a run folder: choose another folder")
        write_config(out / "config.yaml", config)
        write_json(out / "environment.json", _environment(config))
        write_json(out / "data.json", described)
    return Run(out, config, catalogue, frames, _device(device))
