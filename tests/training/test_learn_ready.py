"""A ready model, which comes without its videos and its classifier's checkpoint, learns from corrections."""

import shutil
from dataclasses import replace

import pytest

from colocam.inference.localizer import Localizer
from colocam.labels import write_corrections
from colocam.run import open_run
from colocam.training.learning import learn
from colocam.training.learning.card import QuickLearner
from colocam.training.learning.lesson import Learning
from colocam.utils.files import parse_json, write_json
from tests.helpers.lessons import of_truth


@pytest.fixture
def ready(trained, tmp_path):
    """The files of a ready model; nothing may be written beside them."""
    folder = tmp_path / "ready"
    folder.mkdir()
    for name in ("config.yaml", "model.json", "model.safetensors"):
        shutil.copyfile(trained / name, folder / name)
    tags = parse_json((trained / "data.json").read_text())["tags"]
    empty = {"tags": tags, "boxes": False, "frames": "frames", "folders": [], "clips": []}
    write_json(folder / "data.json", empty)
    return folder


@pytest.fixture
def corrections(trained, collection):
    """Corrections that name the files of their videos."""
    paths = {clip.name: str(clip.path.absolute()) for clip in open_run(trained).catalogue.clips}
    return [replace(one, path=paths[one.video]) for one in of_truth(trained, collection, "train", "val")]


def test_a_ready_model_learns_twice(ready, corrections, tmp_path):
    files, said = sorted(ready.iterdir()), tmp_path / "said.csv"
    write_corrections(said, corrections)
    first = learn(ready, [said], tmp_path / "first", Learning(steps=2), device="cpu")
    assert sorted(ready.iterdir()) == files
    assert first.proof is not None
    Localizer.load(tmp_path / "first", "cpu")
    open_run(tmp_path / "first").classifier()
    second = learn(tmp_path / "first", [said], tmp_path / "second", Learning(steps=2), device="cpu")
    assert second.frames == first.frames


def test_a_quick_lesson_of_a_ready_model_writes_nothing_beside_it(ready, corrections):
    files = sorted(ready.iterdir())
    QuickLearner(ready, "cpu")(corrections)
    assert sorted(ready.iterdir()) == files
