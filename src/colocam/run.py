"""A run folder: configuration, environment, data and where each trained part lies."""

import importlib.metadata
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from colocam.cams.cam_source import CamSource, open_source
from colocam.config import Backbone, Config, Method, Source, read_config, write_config
from colocam.data.cache_entry import CachedClip
from colocam.data.catalogue import Catalogue
from colocam.data.frame_cache import cache_frames
from colocam.errors import ColocamError
from colocam.models import Classifier
from colocam.types import Clip, Split
from colocam.utils.checkpoint import load_checkpoint
from colocam.utils.files import explain_os_errors, write_json

BEGUN = ("environment.json", "data.json")
"""Written before config.yaml, which makes the folder a run: they alone are what an interruption left."""


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

    def require(self, split: Split) -> None:
        """Refuse a split that the run has no video of."""
        if not self.catalogue.of(split):
            there = sorted({clip.split for clip in self.catalogue.clips})
            raise ColocamError(f"{self.folder} has no '{split}' video: choose --split {' or '.join(there)}")

    def classifier(self, name: str = "best") -> Classifier:
        """The trained classifier; ``cam`` is the checkpoint that the CAMs come from, where boxes chose another."""
        saved = load_checkpoint(self.folder / "classifier", name) or load_checkpoint(self.folder / "classifier", "best")
        if saved is None:
            raise ColocamError(f"no trained classifier in {self.folder}: finish 'colocam train' first")
        classifier = Classifier(untrained(self.config), len(self.catalogue.tags))
        classifier.load_state_dict(saved[0])
        return classifier.to(self.device).eval()

    def sources(self, *names: Source) -> list[CamSource]:
        """Sources of class activation maps, all on one classifier, which is not opened for none."""
        if not names:
            return []
        classifier, clip, tags = self.classifier("cam"), self.config.clip, self.catalogue.tags
        return [open_source(name, classifier, clip, tags, self.device) for name in names]

    def model_folder(self, method: Method) -> Path:
        """Where the model of a method lies: the run folder itself for the first method."""
        return self.folder if method == self.config.methods[0] else self.folder / method


def open_run(folder: str | Path, device: str | None = None) -> Run:
    """Open a run folder that ``train`` made."""
    folder = Path(folder)
    if not (folder / "config.yaml").is_file() or not (folder / "data.json").is_file():
        raise ColocamError(
            f"{folder} is not a run folder (config.yaml or data.json is missing): give one 'colocam train' made"
        )
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    clips = tuple(
        Clip(**{**entry, "path": Path(entry["path"]), "frames": tuple(Path(p) for p in entry["frames"])})
        for entry in data["clips"]
    )
    catalogue = Catalogue(clips, tuple(data["tags"]))
    return Run(folder, read_config(folder / "config.yaml"), catalogue, Path(data["frames"]), choose_device(device))


def create_run(
    out: Path, config: Config, catalogue: Catalogue, *, frames: Path, device: str | None, boxes: bool
) -> Run:
    """Make the run folder, or check that the one there is of this configuration and these data."""
    compute_device = choose_device(device)
    described = {
        "tags": list(catalogue.tags),
        "boxes": boxes,
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
        if (changed := config_difference(read_config(out / "config.yaml"), config)) is not None:
            raise ColocamError(
                f"{out} holds a run of another configuration ({changed}): choose another folder or delete it"
            )
        if json.loads((out / "data.json").read_text(encoding="utf-8")) != described:
            raise ColocamError(f"{out} holds a run on other videos or boxes: choose another folder or delete it")
    else:
        with explain_os_errors(out):
            out.mkdir(parents=True, exist_ok=True)
            if any(entry.name not in BEGUN and not entry.name.startswith(".") for entry in out.iterdir()):
                raise ColocamError(f"{out} is not empty and not a run folder: choose another folder")
        write_json(out / "environment.json", _environment(config))
        write_json(out / "data.json", described)
        write_config(out / "config.yaml", config)
    return Run(out, config, catalogue, frames, compute_device)


def choose_device(name: str | None) -> torch.device:
    """``cpu``, ``cuda`` or ``cuda:<number>``; without a name the GPU, if there is one."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ColocamError(f"--device {name}: give cpu or cuda") from error
    if device.type not in {"cpu", "cuda"}:
        raise ColocamError(f"--device {name}: give cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ColocamError(
            f"--device {name}: torch sees no such GPU; use --device cpu, or install a GPU build of torch"
        )
    return device


def untrained(config: Config) -> Backbone:
    """The backbone without its initial weights, which a trained model does not need."""
    return config.backbone.model_copy(update={"pretrained": False, "weights": None})


def config_difference(old: Config, new: Config) -> str | None:
    """The first key that differs, with both values."""
    before, after = dict(_flat(old.model_dump())), dict(_flat(new.model_dump()))
    key = next((key for key in before | after if before.get(key) != after.get(key)), None)
    return None if key is None else f"{key}: {before.get(key, 'not set')} there, {after.get(key, 'not set')} now"


def _flat(values: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    flat: list[tuple[str, object]] = []
    for key, value in values.items():
        flat += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else [(prefix + key, value)]
    return flat


def _environment(config: Config) -> dict[str, object]:
    """What a result may depend on beside the configuration."""
    packages = (
        "colocam",
        "torch",
        "torchvision",
        "timm",
        "segmentation-models-pytorch",
        "numpy",
        "av",
        "opencv-python-headless",
    )
    return {
        "command": sys.argv,
        "seed": config.seed,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }
