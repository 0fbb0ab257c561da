"""The scripts of the build, and what measures a run: each explains itself and works on a small one."""

import json
import re
import runpy
import shutil
import tomllib
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from typer.testing import CliRunner

from colocam.evaluation.run_evaluation import evaluate
from lab import runs
from tests.helpers.doc_pages import INLINE, PAGES, prose

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.py"))
STORED = Path(__file__).parent / "stored" / "version-0.1.0"
CORRECTIONS = SCRIPTS[0].parents[1] / "lab" / "corrections.py"
NOT_COMMANDS = {
    "check_machine",  # runs before anything is installed
    "docs_docstrings",  # an extension of griffe
    "wheels",  # functions of the newcomer
}
WITH_HELP = [path for path in SCRIPTS if path.stem not in NOT_COMMANDS]


@pytest.fixture
def script(monkeypatch, capsys):
    """``script(name, *arguments)`` runs a script in this process and gives what it prints."""

    def run(path, *arguments):
        monkeypatch.setattr("sys.argv", [str(path), *map(str, arguments)])
        monkeypatch.syspath_prepend(path.parent)  # as Python does: scripts share functions
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def measured():
    """``measured(name, *arguments)`` runs a command of lab.runs and gives what it prints."""

    def run(*arguments):
        result = CliRunner().invoke(runs.app, list(map(str, arguments)), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return run


def named(name):
    (path,) = [path for path in SCRIPTS if path.stem == name]
    return path


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the trained run whose model focuses its maps on the tag and completes them by color."""
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "model.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(card | {"focus": True, "color_mean": "clip"}), encoding="utf-8")
    return tmp_path / "run"


@pytest.mark.parametrize("path", WITH_HELP, ids=lambda path: path.stem)
def test_every_script_explains_itself(path, script, capsys):
    with pytest.raises(SystemExit) as stop:
        script(path, "--help")
    assert stop.value.code == 0
    assert "usage: " in capsys.readouterr().out


@pytest.fixture
def newcomer(monkeypatch):
    """The module of the newcomer's walk."""
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    return import_module("newcomer")


def test_the_walk_types_every_command_of_the_readme(newcomer, tmp_path, monkeypatch):
    typed = []
    for name in ("run", "serve"):
        monkeypatch.setattr(newcomer.Walk, name, lambda _walk, _python, words: typed.append(words))
    monkeypatch.setattr(newcomer, "install", lambda *_: tmp_path / "light" / "bin" / "python")
    monkeypatch.setattr(newcomer, "borrowing", lambda *_: tmp_path / "full" / "bin" / "python")
    (tmp_path / "demo" / "run-0" / "report").mkdir(parents=True)
    (tmp_path / "demo" / "run-0" / "report" / "index.html").touch()
    walk = newcomer.Walk({".": Path("a.whl"), "./models": Path("b.whl")}, tmp_path, tmp_path)
    for line in newcomer.readme():
        walk.type(line)
    assert {"localize", "train", "serve", "demo", "-c"} <= {words[1] for words in typed}


@pytest.mark.parametrize(
    "line",
    [
        *("ffmpeg -i a.mp4", "make coffee", "colocam fly", "pip install colocam", "pip install ."),
        "colocam localize holiday.mp4 -o out",  # before anything is installed
    ],
)
def test_a_command_that_the_walk_cannot_type_is_a_fault(newcomer, tmp_path, line):
    with pytest.raises(SystemExit, match="fault: "):
        newcomer.Walk({}, tmp_path, tmp_path).type(line)


def test_commands_are_found_wherever_the_readme_has_them(newcomer):
    text = "Use `make demo`, `not this`.\n```\npip install .   # it\n\ncolocam a b\n```\n```python\nprint(1)\n```\n"
    assert newcomer.readme(text) == ["make demo", "pip install .   # it", "colocam a b", "python -c 'print(1)\n'"]


def test_the_laboratory_explains_itself(measured):
    commands = ("presence", "steadiness", "review", "random-clip")
    said = measured("--help")
    assert all(name in said for name in commands)


def test_lowest_pins_each_bound_of_pyproject(script):
    """Read by the library that pip reads requirements with."""
    project = tomllib.loads((SCRIPTS[0].parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    wanted = [one for one in map(Requirement, texts) if one.specifier and one.name != "torch"]
    assert all([part.operator for part in one.specifier] == [">="] for one in wanted)
    pinned = [Requirement(line) for line in script(named("lowest"), "--free", "torch").splitlines()]
    assert all([part.operator for part in one.specifier] == ["=="] for one in pinned)
    versions = [{(one.name, part.version) for one in many for part in one.specifier} for many in (wanted, pinned)]
    assert versions[0] == versions[1]
    assert len(versions[0]) == len(pinned) == len({one.name for one in pinned})  # one bound for each package


def test_presence_of_a_model_with_focus(measured, run, collection):
    lines = measured("presence", run, collection.truth).splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == [
        f"{smooth}, tag {told}" for smooth in ("none", "online", "offline") for told in ("not given", "given")
    ]
    assert sum("(3 frames)" in line for line in lines) == 18  # the first frame of each video is empty


def test_steadiness_and_review(measured, run, collection):
    lines = measured("steadiness", run, collection.truth, "test").splitlines()
    assert [line.split()[0] for line in lines] == ["truth", "none", "online", "offline"]
    assert "CorLoc 100.0" in lines[0]
    first, *orders = measured("review", run, collection.truth).splitlines()
    assert first.startswith("15 frames, ")
    assert [line.split()[0] for line in orders] == ["queue", "by", "random", "even", "best"]


def test_learning_curves_of_corrections(script, run, collection, tmp_path):
    """Cells shared by two processes; a second call computes nothing again; tables and a figure of them."""
    out = tmp_path / "curves.jsonl"
    arguments = [run, "--boxes", collection.truth, "--out", out, "--counts", "0,10,all", "--orders", "random,errors"]
    arguments += ["--parts", "before,quick,seeds,few-shot", "--few-shot-steps", "2"]
    for part in ("0/2", "1/2"):
        script(CORRECTIONS, *arguments, "--part", part)
    lines = {(line["order"], line["boxes"], line["parts"]): line for line in map(json.loads, out.open())}
    assert set(lines) == {
        ("random", 0, "before"),
        ("random", 10, "quick"),
        ("random", 10, "seeds"),
        ("errors", 10, "seeds"),
        ("random", 10, "few-shot"),
        ("random", None, "few-shot"),
    }
    assert lines["errors", 10, "seeds"]["used"] == 12  # all of three videos with four boxes each
    before = evaluate(run, collection.truth, cams=()).methods["colocam"]
    assert lines["random", 0, "before"]["corloc"] == pytest.approx(
        {name: result.average for name, result in before.items()}, abs=1e-3
    )
    assert script(CORRECTIONS, *arguments) == ""
    text = script(CORRECTIONS, "--out", out, "--figure", tmp_path / "curves.svg")
    assert f"| – | before | 0 | {lines['random', 0, 'before']['corloc']['tags-only']:.1f} |" in text
    assert (tmp_path / "curves.svg").read_text(encoding="utf-8").startswith("<svg")


def test_clip_es_runs_on_a_random_clip_of_the_true_width(measured, tmp_path):
    """ViT-B/16 but for its depth: 14 × 14 maps of frames of 224², for each class and with the refinement."""
    from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra

    measured("random-clip", tmp_path, "--blocks", "2")
    clip_es = ClipES.load(tmp_path, ["cat", "dog"], background=BACKGROUND, refine=Refinement())
    maps = clip_es.every_class(torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)) * 255)
    assert maps.shape == (1, 2, 14, 14)
    assert maps.isfinite().all()
    assert (maps.amax((2, 3)) > 0).any()


def test_pages_of_the_site(script, tmp_path):
    """Every page but the single notes is in the navigation once, and every link leads to a page or file of the site."""
    site = tmp_path / "pages"
    script(named("docs_pages"), "-o", site)
    listed = re.findall(r"\]\(([^)]+)\)", (site / "SUMMARY.md").read_text(encoding="utf-8"))
    files = [path for path in site.rglob("*.md") if "source" not in path.parts and path.name != "SUMMARY.md"]
    names = {path.relative_to(site).as_posix() for path in files}
    assert sorted(listed) == sorted(name for name in names if name == "notes/index.md" or not name.startswith("notes/"))
    assert len(names) > len(PAGES)
    assert {"notes/speed.md", "notes/studies/index.md"} <= names
    for path in files:
        text = INLINE.sub("", prose(path.read_text(encoding="utf-8")))
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            assert target.startswith("http") or (path.parent / target).resolve().is_file(), (path, target)


PAGE = '<html><head><link rel="stylesheet" href="style.css"></head><body><p id="here">{}</p></body></html>'


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="https://example.org/">elsewhere</a> <a href="#here">here</a> <img src="data:,">', ""),
        ('<img src="https://example.org/a.png">', "https://example.org/a.png: loaded from another host"),
        ('<script src="//example.org/a.js"></script>', "//example.org/a.js: loaded from another host"),
        ('<style>@import "//example.org/a.css";</style>', "//example.org/a.css: loaded from another host"),
        ('<a href="gone.html">gone</a>', "gone.html: does not exist"),
        ('<a href="index.html#gone">gone</a>', "index.html#gone: no such anchor"),
        ('<a href="../other.html">outside</a>', "../other.html: outside the site"),
    ],
)
def test_faults_of_a_site_are_found(script, tmp_path, capsys, body, fault):
    (tmp_path / "index.html").write_text(PAGE.format(body), encoding="utf-8")
    (tmp_path / "style.css").write_text("p { background: url(data:,) }", encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        script(named("check_site"), tmp_path)
    assert stop.value.code == (1 if fault else 0)
    assert fault in capsys.readouterr().out


def test_fonts_of_another_host_are_found(script, tmp_path, capsys):
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "style.css").write_text('@import "https://fonts.example.org/a.css";', encoding="utf-8")
    with pytest.raises(SystemExit):
        script(named("check_site"), tmp_path)
    assert "style.css: https://fonts.example.org/a.css: loaded from another host" in capsys.readouterr().out


def test_a_release_names_one_version_everywhere(tmp_path):
    differences = runpy.run_path(str(named("check_release")))["differences"]
    (tmp_path / "dist").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.2\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3 (unreleased)\n\n## 1.2.2 (2026-01-01)\n")
    (tmp_path / "dist" / "colocam-1.2.3-cp311-abi3-linux_x86_64.whl").touch()
    (tmp_path / "dist" / "colocam-1.2.1.tar.gz").touch()
    assert [line.partition(":")[0] for line in differences("v1.2.3", tmp_path)] == [
        *("CITATION.cff", "CHANGELOG.md", "dist/colocam-1.2.1.tar.gz")
    ]
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.3 (2026-01-01)\n")
    (tmp_path / "dist" / "colocam-1.2.1.tar.gz").unlink()
    assert differences("v1.2.3", tmp_path) == []


def test_memory_is_measured_over_all_processes(script, tmp_path):
    """Two numbers of frames, one video and a folder each, and a figure."""
    said = script(named("memory_curve"), STORED / "model.onnx", tmp_path / "memory.png", "--frames", 5, 10)
    assert re.findall(r"(\d+) frames", said) == ["5", "5", "10", "10"]
    assert all(float(value) > 50 for value in re.findall(r": (\d+) MB", said))
    assert (tmp_path / "memory.png").read_bytes()[:4] == b"\x89PNG"
