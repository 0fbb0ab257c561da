"""What needs no torch imports none: the light installation has neither torch nor other large packages."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from colocam.utils.extras import EXTRAS, not_installed
from tests.helpers.hidden_modules import hiding, packages_of_extras

STORED = Path(__file__).parent / "stored" / "version-0.1.0"
EXTRA = packages_of_extras() | {"scipy", "torchvision", "transformers"}

CODE = """
import json, shutil, sys
from pathlib import Path

import colocam
import cv2
import numpy as np
from colocam.cli import app
from colocam.maps.postprocess import arrays_with_color_mean
from colocam.maps.postprocess import arrays_postprocess
from colocam.segment import load_segmenter
from colocam.segment.refine import refine

dir(colocam), colocam.__version__, colocam.Box
frames, maps, ids = np.zeros((1, 8, 8, 3), np.uint8), np.ones((1, 8, 8), np.float32), np.zeros(1, np.int64)
level = np.zeros((1, 32, 32), np.uint8)
level[0, 8:20, 8:20] = 200
found = {
    "color_mean": arrays_with_color_mean(frames, maps, ids).tolist(),
    "focus": arrays_postprocess(frames, maps, ids, np.ones((1, 4, 4), np.float32)).shape,
    "refined": len(refine(load_segmenter(sys.argv[1]), [np.zeros((40, 60, 3), np.uint8)], level)),
}

stored, out = Path(sys.argv[2]), Path(sys.argv[3])


def colocam_(*words):
    app([str(word) for word in words], standalone_mode=False)


colocam_("localize", stored / "model.onnx", stored / "video.mp4", "-o", out, "--masks")
colocam_("localize", stored / "model.onnx", stored / "video.mp4", "-o", out / "many", "--instances", "--no-video")
videos, pictures = out / "videos", out / "pictures"
videos.mkdir(), pictures.mkdir()
for name in ("a", "b", "c"):
    shutil.copy(stored / "video.mp4", videos / f"{name}.mp4")
for index in range(3):
    cv2.imwrite(str(pictures / f"{index}.png"), np.full((48, 64, 3), 50 * index, np.uint8))
colocam_("localize", stored / "model.onnx", videos, "-o", out / "several", "--workers", "2", "--masks")
colocam_("localize", stored / "model.onnx", pictures, "-o", out / "images")
for name in {*colocam.labels.writable()} - {"parquet"}:  # which needs an extra
    images = ["--images"] if name == "label-studio-masks" else []
    colocam_("export", out / "several", "--to", name, "-o", out / "to" / name, *images)
colocam_("export", out / "images", "--to", "coco", "-o", out / "to" / "coco-of-images")
colocam_("export", out / "video.csv", "--to", "coco", "-o", out / "coco")
colocam_("import", out / "coco", "--from", "coco", "--tables", out / "video.csv", "-o", out / "corrections.csv")
colocam_("review", out / "video.csv", "-o", out / "review.csv")
(out / "truth.csv").write_text("clip,frame,present,x1,y1,x2,y2,tag,split,width,height\\n"
    "a,0,1,1,1,9,9,cat,test,20,20\\na,0,1,11,11,19,19,cat,test,20,20\\n")
(out / "boxes.csv").write_text("clip,frame,x1,y1,x2,y2,score\\na,0,1,1,9,9,0.9\\na,0,11,11,19,19,0.8\\n")
colocam_("score", out / "boxes.csv", "--boxes", out / "truth.csv", "--json", out / "score.json")
colocam_("config", "schema")
print(json.dumps(found))
"""


def test_the_commands_of_the_light_installation(box_segmenter_files, tmp_path):
    command = [sys.executable, "-c", CODE, box_segmenter_files, STORED, tmp_path]
    environment = hiding(tmp_path / "site", EXTRA)
    child = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert child.returncode == 0, child.stderr
    assert "Traceback" not in child.stderr
    found = json.loads(child.stdout.splitlines()[-1])
    np.testing.assert_allclose(found["color_mean"], np.ones((1, 8, 8)), atol=1e-3)  # the mean of equal maps
    assert found["focus"] == [1, 8, 8]
    assert found["refined"] == 1
    assert len((tmp_path / "video.csv").read_text().splitlines()) == 25
    for name in ("a", "b", "c"):
        several = tmp_path / "several" / f"{name}.csv"
        assert len(several.read_text().splitlines()) == 25
        assert several.with_suffix(".mp4").stat().st_size > 0
    assert len((tmp_path / "images" / "pictures.csv").read_text().splitlines()) == 4
    assert "accepted" in (tmp_path / "corrections.csv").read_text()
    score = json.loads((tmp_path / "score.json").read_text())
    assert score["instances"]["methods"]["boxes"]["all boxes"]["recall"]["mean"] == 100


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("torch", "train", ["train", "videos", "--out", "run"]),
        ("pyarrow", "parquet", ["label", STORED / "model.onnx", STORED / "video.mp4", "-o", "labels"]),
        ("fastapi", "serve", ["serve", "run", "videos"]),
    ],
)
def test_a_command_that_needs_an_extra_says_which(package, extra, words, new_colocam, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_colocam(*words, absent=[package]).error == (
        f"error: {package}, which this command needs, is not installed: pip install 'colocam[{extra}]' "
        f"(in a clone: pip install -e '.[{extra}]')"
    )


def python(*words, absent):
    """Run Python in a new process where the packages ``absent`` cannot be imported."""
    start = f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
    return subprocess.run(
        [sys.executable, "-c", start + words[0], *words[1:]], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["torch", "onnx", "onnxscript", "onnxruntime"])
def test_export_model_names_the_extra_that_writes_onnx(new_colocam, tmp_path, name):
    if name != "torch":
        pytest.importorskip("torch", reason="it is missed first")
    told = new_colocam("export-model", STORED / "run", "-o", tmp_path / "model.onnx", absent=[name]).error
    assert told.startswith(f"error: {name}, which export-model needs, is not installed: pip install 'colocam[onnx]' ")


@pytest.mark.parametrize(
    ("absent", "told"),
    [
        (
            ["fastapi", "uvicorn"],
            "error: uvicorn, which the backend of Label Studio needs, is not installed: pip install ",
        ),
        (["torch"], f"error: torch, which the run folder {STORED / 'run'} needs, is not installed: pip install "),
    ],
)
def test_the_backend_of_label_studio_says_one_line_for_what_is_missing(tmp_path, absent, told):
    code = "import runpy; runpy.run_module('colocam.integrations.label_studio_backend', run_name='__main__')"
    ended = python(code, str(STORED / "run"), str(tmp_path), str(tmp_path / "work"), absent=absent)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(told)


def test_a_public_name_that_needs_torch_says_how_to_install_it():
    for name in ("train", "evaluate"):
        ended = python(f"from colocam import {name}", absent=["torch"])
        assert ended.returncode == 1
        assert ended.stderr.count("Traceback") == 1
        assert ended.stderr.splitlines()[-1] == (
            f"colocam.errors.NotInstalledError: torch, which colocam.{name} needs, is not installed: "
            "pip install 'colocam[train]' (in a clone: pip install -e '.[train]')"
        )


def test_a_program_catches_a_missing_package_as_any_other_error():
    caught = """
from colocam import ColocamError
for kind in (ColocamError, ImportError):
    try:
        from colocam import train
    except kind as error:
        print(error.name, error)
"""
    told = python(caught, absent=["torch"]).stdout.splitlines()
    assert [line.startswith("torch torch, which colocam.train needs, is not installed") for line in told] == [True] * 2


def test_a_worker_says_what_a_format_needs(tmp_path):
    """Several videos, so that workers write the tables."""
    command = [sys.executable, "-m", "colocam", "localize", STORED / "model.onnx", STORED / "video.mp4"]
    command += [STORED / "videos", "-o", tmp_path / "out", "--table", "parquet", "--no-video", "--workers", "2"]
    environment = hiding(tmp_path / "site", EXTRA)
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 1
    assert "error: pyarrow, which this command needs, is not installed: pip install 'colocam[parquet]'" in ended.stderr


def test_extras_exist():
    """An extra that an error names is one of the package."""
    given = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(EXTRAS.values()) <= given.keys()
    assert str(not_installed(ModuleNotFoundError(name="other"), "it")).endswith("is not installed: pip install other")


def test_the_version_stands_in_one_place():
    root = Path(__file__).parents[1]
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text()
    assert f"\n## {version} " in (root / "CHANGELOG.md").read_text()
