"""A run folder: its configuration, environment and data, and where each trained part is stored."""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import TypeAdapter

from colocam.cams import CamSource, open_cam
from colocam.config import Backbone, Config, read_config, write_config
from colocam.data.catalogue import Catalogue
from colocam.data.frame_cache import CachedClip, cache_frames, with_digests
from colocam.data.run_data import RunData, data_difference, read_data, stored_data
from colocam.errors import ColocamError
from colocam.losses import Term
from colocam.models import Classifier, make_classifier
from colocam.models.model_file import build_checked, fill
from colocam.types import Split
from colocam.utils.device import choose_device
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.files import explain_os_errors, parse_json, write_json
from colocam.utils.tensors import load_checkpoint

BEGUN = ("environment.json", "data.json")
"""Written before config.yaml, which makes the folder a run: without it, they come from an interrupted start."""
_TERMS = TypeAdapter(dict[str, float])


@dataclass(frozen=True, slots=True)
class Run:
    """An open run folder.

    Attributes:
        folder: the run folder.
        config: what was trained.
        catalogue: clips and tags.
        frames: folder of the decoded frames.
        device: where networks are run.
    """

    folder: Path
    config: Config
    catalogue: Catalogue
    frames: Path
    device: torch.device

    def clips(self, *splits: Split) -> list[CachedClip]:
        """The readable clips of some splits; their frames are decoded on first use."""
        wanted = [clip for clip in self.catalogue.clips if clip.split in splits]
        return cache_frames(wanted, self.frames, size=self.config.frames.resize, max_frames=self.config.frames.per_clip)

    def require(self, split: Split) -> None:
        """Raise an error if the run has no video of ``split``."""
        if not self.catalogue.of(split):
            there = sorted({clip.split for clip in self.catalogue.clips})
            raise ColocamError(f"{self.folder} has no '{split}' video: choose the split {' or '.join(there)}")

    def classifier(self, name: str = "best") -> Classifier:
        """The trained classifier: the checkpoint ``best``, or ``cam``, which has the best CAMs if there were boxes."""
        saved = load_checkpoint(self.folder / "classifier", name) or load_checkpoint(self.folder / "classifier", "best")
        if saved is None:
            raise ColocamError(f"no trained classifier in {self.folder}: finish 'colocam train' first")
        tensors, state = saved

        def build() -> Classifier:
            return make_classifier(self.config, untrained(self.config), len(self.catalogue.tags))

        shapes = {key: tuple(tensor.shape) for key, tensor in tensors.items()}
        described = str(self.folder / "config.yaml")
        weights = f"classifier/{state['weights']}"
        classifier = build_checked(build, self.config.backbone, shapes, described, weights)
        fill(classifier, tensors)
        return classifier.to(self.device).eval()

    def sources(self, *names: str) -> list[CamSource]:
        """CAMs by their names in ``CAMS``, all of one classifier, which is loaded only if there are names."""
        if not names:
            return []
        classifier, tags = self.classifier("cam"), self.catalogue.tags
        return [open_cam(name, classifier, self.config, tags, self.device) for name in names]

    def model_folder(self, method: str) -> Path:
        """Folder of the model of a method: the run folder itself for the first method."""
        return self.folder if method == self.config.methods[0] else self.folder / method


def open_run(folder: str | Path, device: str | None = None) -> Run:
    """Open a run folder that ``train`` wrote."""
    folder = Path(folder)
    if not (folder / "config.yaml").is_file() or not (folder / "data.json").is_file():
        raise ColocamError(
            f"{folder} is not a run folder (config.yaml or data.json is missing): give one that 'colocam train' wrote"
        )
    data = read_data(folder)
    return Run(folder, read_config(folder / "config.yaml"), data.catalogue, data.frames, choose_device(device))


def create_run(
    out: Path,
    config: Config,
    catalogue: Catalogue,
    *,
    frames: Path,
    device: str | None,
    boxes: bool,
    terms: Sequence[Term] = (),
) -> Run:
    """Create the run folder, or check that the existing one has this configuration, these data and loss terms.

    The data are the same if the content of their files is, wherever they are now.
    """
    compute_device = choose_device(device)
    exists = (out / "config.yaml").is_file() and (out / "data.json").is_file()
    before = read_data(out) if exists else None
    if exists and (changed := config_difference(read_config(out / "config.yaml"), config)) is not None:
        raise ColocamError(
            f"{out} contains a run with a different configuration ({changed}): choose another folder or delete it"
        )
    digests = FileDigests(frames / MEMORY)
    if before is None or before.has_digests:
        catalogue = replace(catalogue, clips=with_digests(catalogue.clips, digests))
    now = RunData(catalogue, boxes, frames)
    if before is not None:
        if (changed := data_difference(before, now)) is not None:
            raise ColocamError(
                f"{out} contains a run on different videos or boxes ({changed}): choose another folder or delete it"
            )
        stored_terms = _stored_terms(out / "environment.json")
        if stored_terms != (given := {term.name: term.weight for term in terms}):
            raise ColocamError(
                f"{out} holds a run with the added loss terms {_named(stored_terms)}, not {_named(given)}: "
                "pass the same 'terms' to colocam.train, or choose another folder"
            )
    else:
        with explain_os_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            if any(entry.name not in BEGUN and not entry.name.startswith(".") for entry in out.iterdir()):
                raise ColocamError(f"{out} is not empty and not a run folder: choose another folder")
        write_json(out / "environment.json", _environment(config, terms))
    if before is None or (before.has_digests and before != now):
        write_json(out / "data.json", stored_data(out, now))  # also where files were moved since
    if before is None:
        write_config(out / "config.yaml", config)
    with explain_os_errors(frames):
        frames.mkdir(parents=True, exist_ok=True)
    digests.save()
    return Run(out, config, catalogue, frames, compute_device)


def untrained(config: Config) -> Backbone:
    """The backbone without its initial weights, which a trained model replaces."""
    return config.backbone.model_copy(update={"pretrained": False, "weights": None})


def config_difference(old: Config, new: Config) -> str | None:
    """The first key that differs, with both values; None if all are equal."""
    before, after = dict(_flat(old.model_dump())), dict(_flat(new.model_dump()))
    key = next((key for key in before | after if before.get(key) != after.get(key)), None)
    return None if key is None else f"{key}: {before.get(key, 'not set')} there, {after.get(key, 'not set')} now"


def _flat(values: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    flat: list[tuple[str, object]] = []
    for key, value in values.items():
        flat += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else [(prefix + key, value)]
    return flat


def _stored_terms(path: Path) -> dict[str, float]:
    try:
        described = parse_json(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return _TERMS.validate_python(described.get("terms", {}))  # runs of version 0.1.0 have none
    except (ValueError, AttributeError) as error:
        raise ColocamError(f"{path} is damaged: restore the file, or choose another folder") from error


def _named(terms: dict[str, float]) -> str:
    return ", ".join(f"{name} ({weight:g})" for name, weight in terms.items()) or "none"


def _environment(config: Config, terms: Sequence[Term]) -> dict[str, object]:
    """What the result may depend on besides the configuration and the data."""
    packages = ["colocam", "torch", "torchvision", "timm", "numpy", "av"]
    return {
        "command": sys.argv,
        "seed": config.seed,
        "terms": {term.name: term.weight for term in terms},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "packages": {name: importlib.metadata.version(name) for name in (*packages, "opencv-python-headless")},
    }
