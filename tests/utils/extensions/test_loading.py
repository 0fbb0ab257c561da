"""Where extensions come from: an environment variable, or the entry point of an installed package."""

import json
import re
import subprocess
import sys

import pytest

from colocam.boxes import CHOOSERS
from colocam.cams import CAMS
from colocam.config import load_config, schema
from colocam.data import index_dataset
from colocam.errors import ColocamError
from colocam.labels import FORMATS, export, import_labels
from colocam.losses import LOSSES, Loss
from colocam.report.curves import training_curves
from colocam.utils.extensions import HOW, load_extensions

FORMAT = """
from colocam.labels import FORMATS, Format

FORMATS["packed"] = Format("a format of a package", lambda labels, folder, options: None)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """``package(source)`` installs a package with an entry point, as pip does, in a folder of ``sys.path``."""
    monkeypatch.setitem(FORMATS, "packed", None)  # the package replaces it, and the test removes it

    def install(source):
        (tmp_path / "my_packed.py").write_text(source, encoding="utf-8")
        described = tmp_path / "my_packed-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: my-packed\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text("[colocam.extensions]\nmine = my_packed\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "my_packed", raising=False)

    yield install
    sys.modules.pop("my_packed", None)


def test_a_package_registers_itself_by_an_entry_point(package, colocam, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    package(FORMAT)
    assert re.search(r"packed +a format of a package", colocam("export", "--help").out)


def test_a_package_that_cannot_be_loaded(package):
    package("1 / 0")
    with pytest.raises(ColocamError, match=r"my_packed \(entry point colocam\.extensions\): division by zero"):
        load_extensions()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--help"]])
def test_help_imports_no_extension(tmp_path, monkeypatch, colocam, words):
    """It may import torch, which takes seconds."""
    (tmp_path / "slow.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(tmp_path / "slow.py"))
    assert colocam(*words).code == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: load_config(overrides=["cam=mine"]), "'cam' names 'mine', which is not in colocam.cams.CAMS"),
        (
            lambda _: load_config(overrides=["methods=[mine]"]),
            "'methods' names 'mine', which is not in colocam.config.METHODS: valid are",
        ),
        (
            lambda _: load_config(overrides=["localizer.chooser=mine"]),
            "'localizer.chooser' names 'mine', which is not in colocam.boxes",
        ),
        (lambda _: load_config(overrides=["localizer.losses.extra={mine: 1}"]), "'mine'"),
        (lambda folder: export([folder], "mine", folder / "out"), "'mine'"),
        (lambda folder: import_labels(folder, "mine"), "'mine'"),
        (lambda folder: index_dataset("mine", folder), "'mine'"),
    ],
)
def test_an_unknown_name_tells_how_extensions_are_loaded(call, says, tmp_path):
    with pytest.raises(ColocamError, match=re.escape(says)) as error:
        call(tmp_path)
    assert str(error.value).endswith(HOW)
    assert "COLOCAM_EXTENSIONS" in HOW


def test_an_unknown_data_set_and_backbone(colocam, tmp_path, collection, tiny_sets):
    assert "COLOCAM_EXTENSIONS" in colocam("index", "mine", tmp_path).err
    names = ["--set", "backbone.name=mine"]
    trained = colocam("train", collection.manifest, "--preset", "demo", "--out", tmp_path / "run", *tiny_sets, *names)
    assert "COLOCAM_EXTENSIONS" in trained.error


def test_the_configuration_knows_what_is_shipped():
    assert (tuple(CAMS), tuple(CHOOSERS), tuple(LOSSES)) == (schema.CAMS, schema.CHOOSERS, schema.TERMS)


def test_a_configuration_is_checked_without_torch():
    code = (
        "import json, sys; sys.modules.update(dict.fromkeys(['torch', 'timm', 'torchvision']))\n"
        "from colocam import load_config\n"
        "made = load_config('resnet50', overrides=['cam=gradcam', 'localizer.chooser=largest', 'methods=[tcam]'])\n"
        "print(json.dumps(made.model_dump(mode='json')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    expected = load_config("resnet50", overrides=["cam=gradcam", "localizer.chooser=largest", "methods=[tcam]"])
    assert json.loads(ended.stdout) == expected.model_dump(mode="json")


def test_curves_have_the_title_of_a_registered_loss(monkeypatch):
    monkeypatch.setitem(LOSSES, "mine", Loss("My own loss", lambda _: lambda step: step.maps.mean()))
    line = {"phase": "colocam", "event": "train", "step": 1, "loss": 2.0, "crf": 1.0, "mine": 0.5, "theirs": 0.5}
    (phase,) = training_curves([line])
    assert [panel.title for panel in phase.panels] == ["Total loss", "CRF", "My own loss", "Theirs"]
