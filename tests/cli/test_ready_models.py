"""Models that are found by name: in a clone, in the package of models, or not at all."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from colocam.cli import ready_models as ready
from colocam.cli.ready_models import DEFAULT, find_model, looks_like_model
from colocam.errors import ColocamError
from colocam.inference.network import open_onnx

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "stored" / "version-0.1.0"
SAID = f"using the ready model {DEFAULT}; choose another with --model\n"


def put(folder, name):
    """A stand-in for a ready model."""
    (folder / name).mkdir(parents=True)
    return Path(shutil.copy(STORED / "model.onnx", folder / name / f"{name}.onnx"))


@pytest.fixture
def models(tmp_path, monkeypatch):
    """The only folder of ready models."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setattr(ready, "ready_folders", lambda: [folder])
    return folder


def test_a_clone_and_the_package_are_looked_into(tmp_path, monkeypatch):
    """The wheel that ``make dist`` builds, from a copy: setuptools writes beside what it builds."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "models", copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "*.onnx"))
    put(copy, "mine")
    (copy / "mine" / "MODEL_CARD.md").write_text("# mine")
    built = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, copy]
    subprocess.run(list(map(str, built)), check=True, capture_output=True)
    (wheel,) = tmp_path.glob("colocam_models-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = ready.ready_models()["mine"]
    assert found == tmp_path / "site" / "colocam_models" / "mine" / "mine.onnx"
    assert found.read_bytes() == (STORED / "model.onnx").read_bytes()
    assert (found.parent / "MODEL_CARD.md").is_file()
    run = tmp_path / "site" / "colocam_models" / DEFAULT
    assert {path.name for path in run.iterdir()} >= {"config.yaml", "data.json", "model.json", "model.safetensors"}
    put(tmp_path / "models", "mine")
    monkeypatch.chdir(tmp_path)  # what is installed comes first
    assert ready.ready_models()["mine"] == found
    put(tmp_path / "models", "here")
    assert ready.ready_models()["here"] == Path("models/here/here.onnx")
    assert ready.ready_folders()[-1] == ROOT / "models"


def test_names_are_those_of_folders_with_a_file_of_the_same_name(models):
    first, second = put(models, "b"), put(models, "a")
    (models / "a" / "other.onnx").touch()
    (models / "none").mkdir()
    assert ready.ready_models() == {"a": second, "b": first}


def test_a_model_is_a_path_or_a_name(models, tmp_path, monkeypatch):
    file = put(models, "cars")
    monkeypatch.chdir(tmp_path)
    assert find_model("cars") == file
    (tmp_path / "cars").mkdir()  # what is there comes first
    assert find_model("cars") == Path("cars")
    with pytest.raises(ColocamError, match=r"^boat: there is no run folder, .* with this name: valid are cars$"):
        find_model("boat")
    with pytest.raises(ColocamError, match=r"did you mean 'cars'\?$"):
        find_model("car")
    with pytest.raises(ColocamError, match=rf"{DEFAULT} is not installed: run 'pip install ./models' in a clone"):
        find_model(DEFAULT)


def test_the_first_word_is_a_model_or_a_video(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in (("run", "model.json"), ("begun", "config.yaml"), ("videos", "a.mp4")):
        (tmp_path / name).mkdir()
        (tmp_path / name / content).touch()
    Path("plain").touch()
    Path("other.pt").touch()
    expected = {
        **dict.fromkeys(["run", "begun", "small.onnx", "Gone.ONNX", "other.pt"], (True, True)),
        **dict.fromkeys(["videos", "plain", "gone.mp4", "-", "rtsp://camera", "videos/a.mp4"], (False, False)),
        **dict.fromkeys(["gone", "gone.v2"], (False, True)),
    }
    found = {word: tuple(looks_like_model(word, more=more) for more in (False, True)) for word in expected}
    assert found == expected


def test_a_wrong_name_in_the_place_of_the_model_is_refused(models, colocam, tmp_path, monkeypatch):
    """The ready model, which finds other classes, would run over the videos."""
    monkeypatch.chdir(tmp_path)
    put(models, DEFAULT)
    shutil.copy(STORED / "video.mp4", "v.mp4")
    for folder in ("empty", "notes", "runs/pets"):
        Path(folder).mkdir(parents=True)
    Path("notes/todo.txt").touch()
    Path("notes/weights.bin").touch()
    Path("runs/pets/model.json").touch()
    Path("runs/pets/best.png").touch()
    neither = "contains neither a model (model.json) nor a video: name a run folder, an ONNX file, or videos"
    unknown = f"there is no run folder, ONNX file or ready model with this name: valid are {DEFAULT}"
    told = {
        "empty": f"error: empty {neither}",
        "notes": f"error: notes {neither}",
        "runs": "error: runs is not a model, but runs/pets is: name that",
        "runs/pet": f"error: runs/pet: {unknown}",
        "pet.v2": f"error: pet.v2: {unknown}",
    }
    for word, line in told.items():
        assert colocam("localize", word, "v.mp4", "-o", "out").error == line
    assert colocam("localize", "notes", "-o", "out").error == told["notes"]
    assert not Path("out").exists()
    done = colocam("localize", DEFAULT, "v.mp4", "-o", "out", "--no-video")  # a ready model by its name, as a word
    assert (done.code, Path("out/v.csv").is_file()) == (0, True)


def test_localize_without_a_model(models, colocam, tmp_path):
    video, out = STORED / "video.mp4", tmp_path / "out"
    missing = colocam("localize", video, "-o", out, "--no-video").error
    assert missing.startswith(f"error: {video} is neither a run folder nor an ONNX file, and")
    assert "'pip install ./models' in a clone" in missing
    put(models, DEFAULT)
    put(models, "mine")
    done = colocam("localize", video, "-o", out, "--no-video")
    assert (done.code, done.err.count(SAID)) == (0, 1)
    named = [
        ("localize", video, "--model", DEFAULT),
        ("localize", video, "--model", "mine"),
        ("localize", video, "--model", STORED / "model.onnx"),
        ("localize", STORED / "model.onnx", video),
    ]
    for index, words in enumerate(named):
        done = colocam(*words, "-o", tmp_path / str(index), "--no-video")
        assert (done.code, SAID in done.err) == (0, False)
        assert (tmp_path / str(index) / "video.csv").read_bytes() == (out / "video.csv").read_bytes()
    wrong = colocam("localize", video, "--model", "yours", "-o", out).error
    assert wrong.startswith("error: yours: there is no run folder")
    assert colocam("localize", STORED / "run", "-o", out).error.endswith("run is a model: name the videos after it")


def test_label_without_a_model(models, colocam, tmp_path):
    videos, out = tmp_path / "videos", tmp_path / "labels"
    videos.mkdir()
    shutil.copy(STORED / "video.mp4", videos)
    assert "pip install ./models" in colocam("label", videos, "-o", out).error
    assert not out.exists()
    put(models, DEFAULT)
    done = colocam("label", videos, "-o", out, "--workers", "1")
    assert (done.code, done.err.count(SAID), done.err.count(": 0 are labeled")) == (0, 1, 1)
    # The key of a part is made from the content of the model: all of these name the same one.
    for words in (
        (videos, "--model", DEFAULT),
        (videos, "--model", STORED / "model.onnx"),
        (STORED / "model.onnx", videos),
    ):
        again = colocam("label", *words, "-o", out)
        assert (again.code, SAID in again.err, again.err.count(": 1 are labeled")) == (0, False, 1)
    assert colocam("label", STORED / "run", "-o", out).error.endswith("run is a model: name the videos after it")
    two = colocam("label", videos, videos, "-o", out).error
    assert (
        two == f"error: label takes a model and one folder or table, got {videos}, {videos}: list all videos in a table"
    )


def test_serve_without_a_model(models, colocam, monkeypatch):
    asked = []
    monkeypatch.setattr("colocam.serve.server.serve", lambda run, videos, out, **_: asked.append((run, videos, out)))
    missing = f"error: no model is named, and the ready model {DEFAULT} is not installed: "
    assert colocam("serve").error.startswith(missing)
    file = put(models, DEFAULT)
    for words in (
        ["holiday.mp4"],
        [],
        [STORED / "run"],
        [STORED / "run", "a.mp4"],
        ["a.mp4", "--model", STORED / "run"],
    ):
        assert colocam("serve", *words).code == 0
    page, run = Path(f"{DEFAULT}-page"), STORED / "run"
    assert [(found, videos) for found, videos, _ in asked] == [
        (file, ["holiday.mp4"]), (file, []), (run, []), (run, ["a.mp4"]), (run, ["a.mp4"]),
    ]  # fmt: skip
    assert [out for *_, out in asked] == [page, page, *[Path("run-page")] * 3]


@pytest.mark.parametrize("file", sorted((ROOT / "models").glob("*/*.onnx")), ids=lambda file: file.stem)
def test_a_model_of_the_repository_is_small_whole_and_described(file):
    assert file.stem == file.parent.name
    assert file.stat().st_size <= 16e6
    _, card = open_onnx(file)
    described = (file.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "TODO" not in described
    assert hashlib.sha256(file.read_bytes()).hexdigest() in described
    assert [tag for tag in card.tags if tag not in described] == []
