"""What the shell offers after Tab."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer._completion_classes import BashComplete

from colocam.cli import app
from colocam.cli.exchange_commands import PARTS
from colocam.config.loading import preset_names
from colocam.labels import readable, writable
from colocam.training.learning import lesson

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
TAGS = ["bus", "cat", "owl"]


def complete(*words):
    """Values for the last word, which may be empty."""
    *before, incomplete = map(str, words)
    shell = BashComplete(typer.main.get_command(app), {}, "colocam", "_COLOCAM_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


@pytest.mark.parametrize("command", [("train", "videos"), ("study", "compare"), ("bench", "train")])
def test_presets(command):
    assert complete(*command, "--preset", "") == preset_names()
    assert complete(*command, "--preset", "res") == ["resnet50"]


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("localize", "run", "video.mp4", "--smooth", "o"), ["offline", "online"]),
        (("label", "run", "videos", "--color-mean", ""), ["off", "frame", "clip"]),
        (("evaluate", "run", "--chooser", ""), ["largest", "consensus"]),
        (("evaluate", "run", "--split", "t"), ["train", "test"]),
        (("evaluate", "run", "--cams", "la"), ["layercam"]),
        (("evaluate", "run", "--cams", "al"), ["all"]),
        (("evaluate", "run", "--cams", "cam,la"), ["cam,layercam"]),
        (("evaluate", "run", "--cams", "layercam,la"), []),
        (("localize", "run", "--device", ""), ["cpu", "cuda"]),
        (("review", "run", "--for", ""), ["errors", "learning"]),
        (("bench", "in"), ["inference"]),
        (("export", "boxes.csv", "--to", ""), list(writable())),
        (("export", "boxes.csv", "--to", "yolo"), ["yolo", "yolo-segments"]),
        (("import", "labels.zip", "--from", ""), list(readable())),
    ],
)
def test_values_of_options(words, values):
    assert complete(*words) == values


@pytest.mark.parametrize("command", ["localize", "serve"])
def test_ready_models(command, tmp_path, monkeypatch):
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.onnx").touch()
    monkeypatch.setattr("colocam.cli.ready_models.ready_folders", lambda: [tmp_path])
    assert complete(command, "video.mp4", "--model", "") == ["mine", "other"]
    assert complete(command, "video.mp4", "--model", "m") == ["mine"]


def test_tags_are_those_of_the_run():
    run = STORED / "run"
    assert complete("localize", run, "video.mp4", "--tag", "") == TAGS
    assert complete("localize", run, "--tag", "c") == ["cat"]
    assert complete("label", run, "videos", "-o", "labels", "--tag", "") == TAGS


def test_tags_of_a_run_that_cannot_be_read_are_none(tmp_path):
    for content in ("{", '{"format": 99}', '{"format": 1}'):
        (tmp_path / "model.json").write_text(content)
        assert complete("localize", tmp_path, "--tag", "") == []
    assert complete("localize", tmp_path / "missing", "--tag", "") == []
    assert complete("localize", "--tag", "") == []


def test_parts_of_learning_are_those_of_the_library():
    assert PARTS == lesson.PARTS
    assert complete("learn", "run", "corrections.csv", "--without", "pr") == ["presence", "projection"]


EXTENSION = """
print("not a value")
from colocam.boxes import CHOOSERS
from colocam.data import DATASETS
from colocam.labels import FORMATS
FORMATS["mine"] = FORMATS["coco"]
CHOOSERS["mine"] = CHOOSERS["largest"]
DATASETS["mine"] = next(iter(DATASETS.values()))
"""
ASK = """
import sys
from typer.main import get_command
from typer._completion_classes import BashComplete
from colocam.cli import app
shell = BashComplete(get_command(app), {}, "colocam", "_COLOCAM_COMPLETE")
for words in (["export", "a.csv", "--to"], ["localize", sys.argv[1], "--chooser"], ["index"],
              ["localize", sys.argv[1], "--tag"], ["evaluate", "run", "--cams"], ["train", "videos", "--preset"]):
    print(*(item.value for item in shell.get_completions(words, "")))
print("torch" in sys.modules)
"""


def test_extensions_are_offered_and_nothing_imports_torch(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(EXTENSION)
    (tmp_path / "heavy.py").write_text("import torch\nraise SystemExit('loaded')")
    shutil.copytree(STORED / "run", tmp_path / "run")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", f"{tmp_path / 'heavy.py'}:{tmp_path / 'mine.py'}")
    asked = [sys.executable, "-c", ASK, tmp_path / "run"]
    answer = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    formats, choosers, sets, tags, cams, presets, torch = answer.splitlines()
    assert sorted(formats.split()) == sorted([*writable(), "mine"])  # other tests of this process may add some again
    assert choosers.split() == ["largest", "consensus", "mine"]
    assert sets.split()[-1] == "mine"
    assert tags.split() == TAGS
    assert "layercam" in cams.split()
    assert presets.split() == preset_names()
    assert torch == "False"


def test_a_broken_extension_does_not_stop_completion(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(tmp_path / "broken.py"))
    assert complete("export", "boxes.csv", "--to", "coc") == ["coco"]
