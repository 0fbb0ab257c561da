"""One set of options: type checkers know the keywords of ``Localizer.load``, and a new option is one field."""

import subprocess
import sys
from dataclasses import fields, make_dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from colocam.cli import shared_options
from colocam.config import options
from colocam.config.options import DEFAULT, Help, Options, make_options
from colocam.errors import ColocamError
from colocam.inference import localizer as module
from colocam.inference.engine import Model
from colocam.inference.results import Tables, Writing
from colocam.inference.task import LocalizeVideo
from colocam.inference.videos import Video
from colocam.video.frame_choice import ALL
from colocam.video.input import VideoInput

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
CALLS = """
from colocam.inference.localizer import Localizer

Localizer.load("run", smooth="online", tag="cat", threshold=0.5, masks=True)
Localizer.load("run", smoth="online")
Localizer.load("run", smooth="sometimes")
Localizer.load("run", masks="yes")
"""


def test_the_keywords_are_the_fields():
    names = [field.name for field in fields(Options)]
    assert list(signature(module.Localizer.load).parameters) == ["run", *names]
    with pytest.raises(ColocamError, match="unknown option smoth: did you mean 'smooth'"):
        make_options(smoth="online")


def test_results_of_earlier_versions_are_found_again():
    """The settings that 0.2.0 made its keys from."""
    unset = ("batch", "tag", "presence", "threshold", "color_mean", "focus", "motion", "chooser", "device")
    earlier = {"smooth": "offline", "masks": False, "instances": False}
    assert Options(batch=4, refine="sam.onnx").settings() == {**dict.fromkeys(unset), **earlier}


def test_keys_of_earlier_versions_stay():
    """Of the tables of 'localize', and of a part of 'label' with a tag; computed by 0.2.0."""
    model, video = STORED / "model.onnx", VideoInput("a.mp4")
    sink = Tables(Path("out"), Writing(annotate=False))
    plain, tagged = (LocalizeVideo(Video(video, "a", tag), sink, Model(model).key(ALL)) for tag in (None, "owl"))
    assert sink.made(plain.key("abc")) == "1514eaff120442b061ffc82c041002f41a213254ba6dad6dfd89da36b06635a9"
    assert tagged.key("abc") == "db35744c4cf6462545395d4a2f5ff8291fec9c4effc39ae8eb7ad9fae3ff10a1"


def test_a_new_option_is_written_in_one_place(monkeypatch):
    """Its field alone gives the command line the option, with its help, and stored results another key."""
    field = ("glances", Annotated[int | None, Help("How often to glance.")], None)
    longer = make_dataclass("Longer", [field], bases=(Options,), frozen=True, kw_only=True)
    monkeypatch.setattr(shared_options, "Options", longer)
    monkeypatch.setattr(options, "DEFAULT", longer())
    app, seen = typer.Typer(), []

    @app.command()
    @shared_options.with_options()
    def command(*, options: Options) -> None:
        seen.append(options)

    run = CliRunner().invoke
    assert "How often to glance." in run(app, ["--help"], terminal_width=200).output
    for words in ([], ["--glances", "2", "--presence", "0.5", "--no-focus", "--smooth", "online"]):
        assert run(app, words).exit_code == 0
    plain, asked = seen
    assert plain.settings() == DEFAULT.settings()  # so that earlier results are found again
    assert asked == longer(glances=2, presence=0.5, focus=False, smooth="online")
    assert {name: asked.settings()[name] for name in ("glances", "presence")} == {"glances": 2, "presence": 0.5}


def test_a_type_checker_refuses_a_wrong_keyword(tmp_path):
    """Of colocam it reads two files, which takes seconds; all names of others are Any."""
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    files = [module.__file__, options.__file__, str(tmp_path / "calls.py")]
    alone = ["--follow-imports=skip", "--ignore-missing-imports", "--cache-dir=/dev/null"]
    command = [sys.executable, "-m", "mypy", *alone, *files]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    found = [line.split(":")[1:] for line in said.splitlines() if Path(line.split(":")[0]).name == "calls.py"]
    errors = [(int(number), message) for number, kind, *message in found if kind == " error"]
    assert [number for number, _ in errors] == [5, 6, 7], said
    assert "did you mean" in str(errors[0])
