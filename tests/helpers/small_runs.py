"""Models trained on the small collection, as runs and ONNX files."""

import shutil
from pathlib import Path

import pytest

from colocam.config import load_config
from tests.helpers.videos import Collection

TINY = (
    "frames.resize=36",
    "frames.crop=32",
    "frames.per_val_clip=3",
    "backbone.args={channels: [8, 8, 8, 8], stem_type: deep, stem_width: 4}",
    "classifier.epochs=2",
    "classifier.batch=4",
    "classifier.frames_per_clip=2",
    "localizer.epochs=2",
    "localizer.batch=6",
    "localizer.frames=3",
    "localizer.decoder=[8, 8, 8, 8, 8]",
    "localizer.seeds.foreground=20",
    "localizer.seeds.background=20",
    "localizer.color_mean=off",
)


@pytest.fixture(scope="session")
def tiny() -> tuple[str, ...]:
    """Overrides of the preset ``demo`` for a model that trains in a second."""
    return TINY


@pytest.fixture(scope="session")
def tiny_sets() -> list[str]:
    """The same for the command line."""
    return [word for override in TINY for word in ("--set", override)]


@pytest.fixture(scope="session")
def tiny_training(tiny_sets) -> list[str]:
    """What ``colocam train`` needs for such a model, which may know its classes badly."""
    return ["--preset", "demo", "--anyway", *tiny_sets]


def train_tiny(folder: Path, collection: Collection) -> None:
    from colocam.training import train  # noqa: PLC0415 - torch only for those who need it

    config = load_config(overrides=[*TINY, "methods=[colocam, fcam]"])
    train(collection.manifest, folder / "run", config, frames=folder / "frames")


@pytest.fixture(scope="session")
def training(shared, collection) -> Path:
    """Folder with the frames and the run of a training."""
    pytest.importorskip("torch", reason="needs the extra [train]")
    return shared("training", lambda folder: train_tiny(folder, collection))


@pytest.fixture(scope="session")
def frame_cache(training) -> Path:
    """The collection's decoded frames, shared by all runs."""
    return training / "frames"


@pytest.fixture(scope="session")
def train_into(collection, frame_cache):
    """``train_into(folder, override, …)`` trains a tiny model on the collection; gives the folder."""
    from colocam.training import train  # noqa: PLC0415

    def run(folder: Path, *overrides: str, source: Path = collection.manifest, **options: object) -> Path:
        config = load_config(overrides=[*TINY, *overrides])
        return train(source, folder, config, **{"frames": frame_cache, **options})

    return run


@pytest.fixture(scope="session")
def trained(training, tmp_path_factory) -> Path:
    """A run with CoLo-CAM and F-CAM, trained on the collection's tags alone; read only."""
    return shutil.copytree(training / "run", tmp_path_factory.mktemp("trained") / "run")


@pytest.fixture
def own_run(trained, tmp_path) -> Path:
    """A copy of that run that may be changed."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture(scope="session")
def onnx_file(trained, shared) -> Path:
    """The model of that run as an ONNX file; read only."""
    from colocam.integrations.onnx_export import export_onnx  # noqa: PLC0415

    return shared("exported", lambda folder: export_onnx(trained, folder / "model.onnx")) / "model.onnx"
