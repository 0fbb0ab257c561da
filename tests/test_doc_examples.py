"""Commands and Python examples of README, guide and docstrings, run as a reader would, on a small run and video.

What is not run, for the reasons below, is parsed or compiled by ``test_docs.py``.
"""

import doctest
import inspect
import re
import shutil
import zipfile
from importlib import import_module
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

import colocam as package
from colocam.boxes import CHOOSERS
from colocam.cams import CAMS
from colocam.config import METHODS, Config
from colocam.data import DATASETS
from colocam.inference.localize import localize_file
from colocam.labels import FORMATS, export, import_labels, read_corrections, write_corrections
from colocam.losses import LOSSES
from colocam.training.learning import lesson as learn
from tests.helpers.doc_pages import ROOT, lines, name_of, python_blocks

STORED = Path(__file__).parent / "stored" / "version-0.1.0"
LINES = lines()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
NOT_RUN = {
    r"(train|demo|learn|export-model|label|report) |export labels": "takes seconds or hours; it has tests of its own",
    r"serve ": "runs until it is ended",
    r".*(ROOT|FRAMES|youtube-objects|dense|index/|demo/|evaluate run |maps/)": "needs a data set",
    r".*(rtsp:|/dev/| - |--push)": "needs a camera, a pipe or a server",
    r".*(creatures|imp-01|--tables out -o corrections)": "needs the videos of the tutorial",
    r"evaluate runs/a ": "needs three runs",
    r"study clip-es .*random-clip": "needs a CLIP of 300 MB; test_scripts.py makes and runs a smaller one",
    r"evaluate .*truth.csv --cams": "is run for the page on CAM methods",
}
"""Commands by their beginning, and why they are not run."""


def commands(page: Path) -> list[tuple[str, ...]]:
    found = [line.arguments for line in LINES if line.page == name_of(page) and line.complete]
    return [words for words in found if not any(re.match(pattern, " ".join(words)) for pattern in NOT_RUN)]


@pytest.fixture
def folder(tmp_path, monkeypatch, box_segmenter_files, trained, collection):
    """The folder of a reader, in which a test runs: run, model, videos, images, boxes, a segmenter."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "runs/pets")
    shutil.copytree(collection.videos, "videos")
    video = collection.videos / "cat" / "test-0.mp4"
    Path("recordings").mkdir()
    shutil.copy(video, "recordings")
    shutil.copy(STORED / "model.onnx", "pets.onnx")
    for name in ("new.mp4", "video.mp4", "herd.mp4", "more.mov", "holiday.mp4"):
        shutil.copy(video, name)
    Path("frames/tom").mkdir(parents=True)
    for index in range(2):
        cv2.imwrite(f"frames/tom/{index}.png", np.zeros((48, 64, 3), np.uint8))
    header, *rows = collection.truth.read_text(encoding="utf-8").splitlines()
    tagged = [f"{header},tag,split,width,height"]
    tagged += [f"{row},{row[:3]},{'test' if 'test' in row else 'train'},48,40" for row in rows]
    for name in ("truth.csv", "boxes.csv"):
        Path(name).write_text("\n".join(tagged), encoding="utf-8")
    Path("others.csv").write_text("clip,frame,x1,y1,x2,y2\ncat/test-0,1,3,4,20,21\n", encoding="utf-8")
    for name in ("mobile_sam.safetensors", "sam2-onnx"):  # the two files of a small segmenter stand in for both
        shutil.copytree(box_segmenter_files, name)
    Path("recordings.csv").write_text("path\nrecordings/test-0.mp4\n", encoding="utf-8")
    return tmp_path


def prepare(words):
    """Between two commands a reader corrects the exported labels in CVAT and downloads them."""
    if words[0] == "import":
        labels = next(Path().glob("*/new.xml")).read_text(encoding="utf-8")
        with zipfile.ZipFile(words[1], "w") as archive:
            archive.writestr("annotations.xml", re.sub(r'xtl="[^"]+"', 'xtl="1.5"', labels, count=1))


def expanded(words):
    """The words after the shell has replaced ``*``."""
    return [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_run(page, colocam):
    for words in commands(page):
        prepare(words)
        done = colocam(*expanded(words))
        assert done.code == 0, (words, done.err)


COMPILED_ONLY = {
    "import fiftyone": "FiftyOne is not among the packages of tests",
    "ClipES.load": "needs the weights of CLIP",
    "push_to_hub": "needs the hub",
    "mobile_sam.pt": "needs the weights of MobileSAM",
    "METHODS[": "needs a run with the new method; tests/utils/extensions/test_methods.py trains one",
}
"""Examples by a part of them, and why they are compiled only."""
REGISTRIES = (CAMS, CHOOSERS, DATASETS, FORMATS, LOSSES, METHODS)


def examples(page: Path) -> list[str]:
    return [code for code in python_blocks(page) if not any(part in code for part in COMPILED_ONLY)]


def checked(function):
    """A stand-in that takes the same arguments, reads the named files and returns the trained run."""
    signature = inspect.signature(function)

    def stand_in(*arguments, **options):
        first, *_ = signature.bind(*arguments, **options).args
        assert Path(first).is_dir()
        assert all(isinstance(value, Config) for name, value in options.items() if name == "config")
        return Path("runs/pets")

    return stand_in


@pytest.fixture
def no_training(monkeypatch):
    """Training and learning check their arguments; what examples register is forgotten afterwards."""
    monkeypatch.setattr(package, "train", checked(package.train), raising=False)
    monkeypatch.setattr(learn, "learn", checked(learn.learn))
    before = [dict(registry) for registry in REGISTRIES]
    yield
    for registry, entries in zip(REGISTRIES, before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.fixture(scope="module")
def tables(tmp_path_factory, collection):
    """Tables of two videos, and labels for CVAT."""
    folder = tmp_path_factory.mktemp("tables")
    for name in ("new", "video"):
        shutil.copy(collection.videos / "cat" / "test-0.mp4", folder / f"{name}.mp4")
        localize_file(STORED / "model.onnx", folder / f"{name}.mp4", folder / "boxes", annotate=False)
    export([folder / "boxes" / "new.csv"], "cvat", folder / "labels")
    return folder


@pytest.fixture
def folder_with_tables(folder, tables, monkeypatch):
    shutil.copytree(tables, folder, dirs_exist_ok=True)
    shutil.copytree(tables / "boxes", "out")
    prepare(("import", "task.zip"))
    write_corrections("corrections.csv", import_labels("task.zip", "cvat", tables=["boxes"]).corrections)
    monkeypatch.syspath_prepend(".")


@pytest.mark.usefixtures("no_training", "folder_with_tables")
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=name_of)
def test_python_examples_run(page):
    names = {"__name__": "__main__", "frames": torch.zeros(2, 3, 32, 32), "classes": torch.tensor([0, 1])}
    for code in examples(page):  # a later example of a page uses names of an earlier one
        if file := re.match(r"# (\w+\.py)\n", code):
            Path(file[1]).write_text(code, encoding="utf-8")
        exec(compile(code, name_of(page), "exec"), names)


DOCSTRINGS_NOT_RUN = (
    *("training.train", "training.learning.lesson"),  # minutes
    "fiftyone_sample",  # FiftyOne is not among the packages of tests
)
GIVEN = {"my_rule": None, "image": np.zeros((48, 64, 3), np.uint8), "read_corrections": read_corrections}
"""Names that examples of docstrings take for granted."""


def modules_with_examples() -> list[str]:
    files = [path for path in sorted((ROOT / "src").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith(DOCSTRINGS_NOT_RUN)]


class Printed(doctest.OutputChecker):
    """What an example prints is compared where the docstring shows it."""

    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)


@pytest.mark.usefixtures("no_training", "folder_with_tables")
@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_docstrings_run(name):
    """Also those that are skipped elsewhere for want of files."""
    module = import_module(name)
    runner = doctest.DocTestRunner(Printed(), verbose=False)
    for test in doctest.DocTestFinder().find(module, extraglobs=GIVEN):
        for example in test.examples:
            example.options.pop(doctest.SKIP, None)
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
