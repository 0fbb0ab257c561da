"""The data of a study: the demo world, or videos and true boxes of the user."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from colocam.config import ClipModel, Config, load_config
from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.demo.world import make_world
from colocam.errors import ColocamError
from colocam.evaluation.run_evaluation import EvaluationSet, open_evaluation_set
from colocam.run import open_run
from colocam.training import train
from colocam.utils.device import choose_device

DEMO = "demo"
WORLD_SEED = 1
"""Seed of the demo's world; no setting was chosen on it."""


@dataclass(frozen=True, slots=True)
class StudyData:
    """Tagged videos with true boxes.

    Attributes:
        name: in the results.
        manifest: videos and tags, all that training reads.
        truth: true boxes, for the evaluation.
    """

    name: str
    manifest: Path
    truth: Path

    @property
    def digest(self) -> str:
        """Hash of both tables."""
        return hashlib.sha256(self.manifest.read_bytes() + b"\0" + self.truth.read_bytes()).hexdigest()[:16]


def data_name(data: str) -> str:
    """Name of the folder of results: ``demo``, or the name of the data's folder."""
    path = Path(data)
    return DEMO if data == DEMO else path.resolve().name if path.is_dir() else path.resolve().parent.name or path.stem


def open_data(data: str, boxes: Path | None, folder: Path, *, smoke: bool) -> StudyData:
    """Open the data, or make the demo world.

    Args:
        data: ``demo``; a folder with manifest.csv and truth.csv, as ``colocam index`` writes it; or a manifest.
        boxes: table of true boxes, where ``data`` is a manifest.
        folder: folder of the demo world.
        smoke: make a tiny world.
    """
    if data == DEMO:
        if boxes is not None:
            raise ColocamError("boxes are for a manifest: the demo world has its own")
        tiny: dict[str, Any] = {"videos_per_class": (2, 1, 1), "frames": 6, "size": (64, 48)}
        world = make_world(folder, seed=WORLD_SEED, **(tiny if smoke else {}))
        return StudyData(DEMO, world.manifest, world.truth)
    path = Path(data)
    manifest, truth = (path / "manifest.csv", boxes or path / "truth.csv") if path.is_dir() else (path, boxes)
    if truth is None:
        raise ColocamError(f"a study needs true boxes of {data}: give a table of boxes")
    for file in (manifest, truth):
        if not file.is_file():
            remedy = "give a folder that 'colocam index' wrote, or a manifest and a table of boxes"
            raise ColocamError(f"data {data}: there is no {file}: {remedy}")
    return StudyData(data_name(data), manifest, truth)


T = TypeVar("T")

SMOKE = (
    "frames.resize=36",
    "frames.crop=32",
    "frames.per_val_clip=2",
    "backbone.args={channels: [8, 8, 8, 8], stem_type: deep, stem_width: 4}",
    "classifier.epochs=1",
    "classifier.batch=4",
    "classifier.frames_per_clip=2",
    "classifier.size=null",
    "localizer.epochs=1",
    "localizer.batch=6",
    "localizer.frames=3",
    "localizer.decoder=[8, 8, 8, 8]",
    "localizer.seeds.foreground=20",
    "localizer.seeds.background=20",
)
"""Sizes of a smoke test."""


@dataclass(frozen=True, slots=True)
class Lab:
    """The conditions of a study.

    Attributes:
        out: folder of all studies on these data; each has its own folder in it.
        data: videos, tags and boxes.
        preset: configuration to start from.
        config_file: YAML file that changes keys of the preset.
        overrides: the user's ``key=value``; a cell's own come after them.
        device: ``cpu`` or ``cuda``; None for the GPU, if there is one.
        val_boxes: choose epochs with the boxes of validation videos, as published; else with tags and maps alone.
        smoke: tiny sizes and few cells.
        values: those of the study's values that are run; empty: all.
    """

    out: Path
    data: StudyData
    preset: str = "demo"
    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    device: str | None = None
    val_boxes: bool = False
    smoke: bool = False
    values: tuple[float, ...] = ()
    _trained: set[Path] = field(default_factory=set, repr=False)
    _evaluation_sets: dict[Path, EvaluationSet] = field(default_factory=dict, repr=False)

    def few(self, values: Sequence[T]) -> Sequence[T]:
        """The chosen values of a study, or the first two in a smoke test."""
        chosen = [value for value in values if value in self.values] if self.values else values
        return chosen[:2] if self.smoke else chosen

    def config(self, overrides: tuple[str, ...] = (), seed: int = 0, methods: tuple[str, ...] = ()) -> Config:
        """The configuration of a cell: preset, file, the user's changes, then the cell's."""
        own = (*overrides, f"seed={seed}", f"methods=[{', '.join(methods)}]")
        return load_config(self.preset, self.config_file, [*(SMOKE if self.smoke else ()), *self.overrides, *own])

    @property
    def work(self) -> Path:
        """Intermediate files that studies share: frames, classifiers, cells."""
        return self.out / "work"

    @property
    def where(self) -> torch.device:
        """The device."""
        return choose_device(self.device)

    def identity(self, config: Config) -> dict[str, Any]:
        """Everything that the result of a trained cell depends on, as plain JSON."""
        return {
            "data": self.data.digest,
            "val_boxes": self.val_boxes,
            "config": _without_clip(config).model_dump(mode="json"),
        }

    def train(
        self, config: Config, folder: Path, classifier: Path | None = None, *, manifest: Path | None = None
    ) -> Path:
        """Train or continue ``folder``, on the videos of ``manifest`` or on all; all runs share the decoded frames."""
        return train(
            manifest or self.data.manifest,
            folder,
            _without_clip(config),
            boxes=self.data.truth if self.val_boxes else None,
            frames=self.work / "frames",
            classifier=classifier,
            device=self.device,
        )

    def stage1(self, config: Config) -> Path:
        """The run folder with the classifier and the CAMs of ``config``, trained on first use."""
        plain = stage1_config(config)
        folder = self.work / "stage1" / f"seed-{config.seed}-{digest(self.identity(plain))}"
        if folder not in self._trained:
            self.train(plain, folder)
            self._trained.add(folder)
        return folder

    def evaluation_set(self, run: Path) -> EvaluationSet:
        """The test frames, classified by ``run``; the last result is cached."""
        if run not in self._evaluation_sets:
            self._evaluation_sets.clear()
            self._evaluation_sets[run] = open_evaluation_set(open_run(run, self.device), self.data.truth)
        return self._evaluation_sets[run]

    @property
    def catalogue(self) -> Catalogue:
        """All clips."""
        return read_catalogue(self.data.manifest, val_fraction=self.config().frames.val_fraction, seed=0)


def stage1_config(config: Config) -> Config:
    """The configuration of a run that trains stage 1 alone and stores its CAMs, for which it may need CLIP."""
    return _without_clip(config.stage1().model_copy(update={"clip": config.clip}))


def digest(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Short hash of ``value``."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _without_clip(config: Config) -> Config:
    """``config`` without the path of CLIP, unless CLIP gives the seeds: it changes no other result."""
    return config if config.cam == "clip-es" else config.model_copy(update={"clip": ClipModel()})
