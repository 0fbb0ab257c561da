"""The scripts behind numbers of the documentation: each explains itself, and those for a run work on a small one."""

import json
import re
import runpy
import shutil
import sys
import tomllib
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from packaging.requirements import Requirement

from colocam.boxes.iou import iou
from colocam.data.index import index_of_table
from colocam.evaluation.prediction_files import read_boxes
from colocam.evaluation.run_evaluation import evaluate
from colocam.segment.segmenter import Masks
from colocam.training import learn_thresholds
from doc_pages import INLINE, PAGES, prose

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.py"))
NOT_COMMANDS = {
    "check_machine",  # runs before anything is installed
    "docs_docstrings",  # an extension of griffe
}
WITH_HELP = [path for path in SCRIPTS if path.stem not in NOT_COMMANDS]


@pytest.fixture
def script(monkeypatch, capsys):
    """``script(name, *arguments)`` runs a script in this process and gives what it prints."""

    def run(path, *arguments):
        monkeypatch.setattr("sys.argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


def named(name):
    (path,) = [path for path in SCRIPTS if path.stem == name]
    return path


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the trained run whose model focuses its maps on the tag and completes them by colour."""
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


def test_presence_of_a_model_with_focus(script, run, collection):
    lines = script(named("presence"), run, collection.truth).splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith(" ")] == [
        f"{smooth}, tag {told}" for smooth in ("none", "online", "offline") for told in ("not given", "given")
    ]
    assert sum("(3 frames)" in line for line in lines) == 18  # the first frame of each video is empty


def test_steadiness_and_review(script, run, collection):
    lines = script(named("steadiness"), run, collection.truth, "test").splitlines()
    assert [line.split()[0] for line in lines] == ["truth", "none", "online", "offline"]
    assert "CorLoc 100.0" in lines[0]
    first, *orders = script(named("review"), run, collection.truth).splitlines()
    assert first.startswith("15 frames, ")
    assert [line.split()[0] for line in orders] == ["queue", "by", "random", "even", "best"]


def test_thresholds_and_the_gallery(script, run, collection, tmp_path):
    result = evaluate(run, collection.truth)
    lines = script(named("thresholds"), run, collection.truth).splitlines()
    assert len(lines) == 4 * len(result.methods)
    script(named("gallery"), run, tmp_path / "picture.jpg")
    assert (tmp_path / "picture.jpg").read_bytes().startswith(b"\xff\xd8")


def test_backbones(script):
    head, _, row = script(named("backbones"), "resnet10t").splitlines()
    assert row.startswith("| `resnet10t` |")
    assert head.count("|") == row.count("|")


def test_learning_curves_of_corrections(script, run, collection, tmp_path, monkeypatch):
    """Cells shared by two processes; a second call computes nothing again; tables and a figure of them."""
    monkeypatch.setattr(learn_thresholds, "PRIOR", learn_thresholds.PRIOR)  # --constant changes it in this process
    path, out = named("corrections"), tmp_path / "curves.jsonl"
    arguments = [run, "--boxes", collection.truth, "--out", out, "--counts", "0,10,all", "--orders", "random,errors"]
    arguments += ["--parts", "before,quick,per_class,few-shot", "--few-shot-steps", "2"]
    arguments += ["--constant", "learn_thresholds.PRIOR=3"]
    for part in ("0/2", "1/2"):
        script(path, *arguments, "--part", part)
    lines = {(line["order"], line["boxes"], line["parts"]): line for line in map(json.loads, out.open())}
    assert set(lines) == {
        ("random", 0, "before"),
        ("random", 10, "quick"),
        ("random", 10, "per_class"),
        ("errors", 10, "per_class"),
        ("random", 10, "few-shot"),
        ("random", None, "few-shot"),
    }
    assert lines["errors", 10, "per_class"]["used"] == 12  # all of three videos with four boxes each
    before = evaluate(run, collection.truth, cams=()).methods["colocam"]
    assert lines["random", 0, "before"]["corloc"] == pytest.approx(
        {name: result.average for name, result in before.items()}, abs=1e-3
    )
    assert script(path, *arguments) == ""
    text = script(named("plot_corrections"), out, "-o", tmp_path / "curves.svg")
    assert f"| – | before | 0 | {lines['random', 0, 'before']['corloc']['tags-only']:.1f} |" in text
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")


def test_settings_are_compared_on_the_other_half_of_a_split(script, run, collection, tmp_path):
    """Corrected and evaluated videos of one split are different ones."""
    script_path, out = named("corrections"), tmp_path / "halves.jsonl"
    arguments = [run, "--boxes", collection.truth, "--out", out, "--split", "train", "--test", "train"]
    script(script_path, *arguments, "--parts", "per_class", "--counts", "50", "--orders", "learning")
    names = runpy.run_path(str(script_path))
    bench = names["Bench"](run, collection.truth, "train", "train", "cpu")
    corrected = {one.video for one in bench.corrections(names["Cell"]("learning", 50, "per_class"))}
    evaluated = {clip.clip.name for clip, _ in bench.evaluated.evaluated.samples.where()}
    assert corrected
    assert evaluated
    assert not corrected & evaluated
    (line,) = [line for line in map(json.loads, out.open()) if line["boxes"] == 50]
    assert line["order"] == "learning"


SALIENCY = """<ir_version: 8, opset_import: ["": 17]>
brightness (float[1, 3, 32, 32] image) => (float[1, 1, 32, 32] saliency) {
  mean = ReduceMean <axes=[1], keepdims=1> (image)
  saliency = Sigmoid (mean)
}"""


class BrightSegmenter:
    """Gives three masks for every prompt: the bright pixels, all pixels, and a small part of the bright ones."""

    name, side = "bright", 64

    def embed(self, images):
        return images.mean(-1) > 128

    def masks(self, embedded, prompts):
        small = np.zeros_like(embedded)
        small[:, 20:24, 20:24] = True
        masks = np.stack([embedded, np.ones_like(embedded), small], 1)[:, None].repeat(prompts.points.shape[1], 1)
        return Masks(np.where(masks, 9.0, -9.0).astype(np.float32), np.full(masks.shape[:3], [0.9, 0.99, 0.95]))


def bright_frames(folder, *boxes):
    """A table of frames with one bright rectangle each, and a network whose map is the brightness."""
    import onnx.parser  # noqa: PLC0415 - slow to import

    rows = ["video,shot,frame,class,split,width,height,x1,y1,x2,y2"]
    for index, (x1, y1, x2, y2) in enumerate(boxes):
        image = np.full((32, 48, 3), 20, np.uint8)
        image[y1:y2, x1:x2] = 230
        cv2.imwrite(str(folder / f"{index}.png"), image)
        rows.append(f"film,film,{index}.png,lamp,test,48,32,{x1},{y1},{x2},{y2}")
    (folder / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")
    onnx.save(onnx.parser.parse_model(SALIENCY), folder / "net.onnx")
    return folder / "manifest.csv"


@pytest.mark.parametrize("rival", ["saliency", "segmenter"])
def test_rivals_draw_boxes_that_colocam_scores(script, tmp_path, monkeypatch, rival):
    """Three frames with one bright rectangle each; the rule leaves out the mask of the background."""
    table = bright_frames(tmp_path, (10, 8, 30, 24), (12, 8, 32, 24), (6, 0, 45, 28))
    monkeypatch.setattr("colocam.segment.open_segmenter.load_segmenter", lambda *_: BrightSegmenter())
    boxes = tmp_path / "boxes.csv"
    said = script(named("rivals"), table, f"--{rival}", tmp_path / "net.onnx", "-o", boxes)
    assert said.startswith("3 frames, ")
    index = index_of_table(table)
    for (clip, frame), found in read_boxes(boxes).items():
        ((true,), (one,)) = index.truth.boxes(clip, frame), found
        assert iou(np.array(one.box), np.array(true)) > 0.85


def test_a_line_of_salient_pixels_is_no_box(script, tmp_path):
    table, boxes = bright_frames(tmp_path, (46, 4, 48, 20), (10, 8, 30, 24)), tmp_path / "boxes.csv"
    script(named("rivals"), table, "--saliency", tmp_path / "net.onnx", "-o", boxes)
    assert [one.box is not None for found in read_boxes(boxes).values() for one in found] == [False, True]


def test_clip_es_runs_on_a_random_clip_of_the_true_width(script, tmp_path):
    """ViT-B/16 but for its depth: 14 × 14 maps of frames of 224², for each class and with the refinement."""
    from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra

    script(named("random_clip"), tmp_path, "--blocks", "2")
    clip_es = ClipES.load(tmp_path, ["cat", "dog"], background=BACKGROUND, refine=Refinement())
    maps = clip_es.every_class(torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)) * 255)
    assert maps.shape == (1, 2, 14, 14)
    assert maps.isfinite().all()
    assert (maps.amax((2, 3)) > 0).any()


def test_figures_of_the_affinity(script, tmp_path):
    cases = [
        {"name": f"colour n={count}", "count": count, "frames": kind, "ms": 5.0 * count}
        for count in (1, 4)
        for kind in ("scene", "noise")
    ]
    errors = [{"tol": tol, "error_W1": tol / 2, "error_WS": tol / 3} for tol in (0.01, 0.001)]
    result = {"device": "NVIDIA H200", "cases": cases, "tolerance": errors}
    (tmp_path / "bench.json").write_text(json.dumps(result), encoding="utf-8")
    script(named("plot_affinity"), tmp_path / "bench.json", "-o", tmp_path)
    assert ">H200, noise</text>" in (tmp_path / "affinity-time.svg").read_text(encoding="utf-8")
    assert ">asked for</text>" in (tmp_path / "affinity-error.svg").read_text(encoding="utf-8")


def test_pages_of_the_site(script, tmp_path):
    """Every page is in the navigation once, and every link leads to a page or file of the site."""
    site = tmp_path / "pages"
    script(named("docs_pages"), "-o", site)
    listed = re.findall(r"\]\(([^)]+)\)", (site / "SUMMARY.md").read_text(encoding="utf-8"))
    files = [path for path in site.rglob("*.md") if "source" not in path.parts and path.name != "SUMMARY.md"]
    assert sorted(listed) == sorted(path.relative_to(site).as_posix() for path in files)
    assert len(listed) > len(PAGES)
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


def test_docstrings_become_markdown(monkeypatch):
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object, Object=object))  # in [docs] alone
    as_markdown = runpy.run_path(str(named("docs_docstrings")))["as_markdown"]
    text = "A :data:`FORMATS`.\n\n>>> run = train(1) # doctest: +SKIP\n>>> for a in run:\n...     print(a)\n2\n\nMore."
    assert as_markdown(text) == (
        "A `FORMATS`.\n\n```pycon\n>>> run = train(1)\n>>> for a in run:\n...     print(a)\n2\n```\n\nMore."
    )
