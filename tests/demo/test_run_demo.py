"""The demonstration from an empty folder to a report, small."""

import json
import shlex
import sys
from functools import partial

import cv2
import pytest

from colocam.demo import from_ready
from colocam.demo import run_demo as demo
from colocam.demo.world import make_world
from colocam.evaluation import glance
from colocam.evaluation.glance import GAP, LONGEST
from colocam.training import loop
from colocam.video.fence import decode, probe


@pytest.fixture
def small_world(monkeypatch):
    """The same world with few, short and small videos."""
    monkeypatch.setattr(demo, "make_world", partial(make_world, videos_per_class=(1, 1, 1), frames=5, size=(48, 40)))
    monkeypatch.setattr(from_ready, "SHORTER", (*from_ready.SHORTER, *demo.AT_ONCE))


def test_from_nothing_to_a_report(small_world, colocam, tiny_sets, tmp_path, monkeypatch):  # noqa: ARG001 - a fixture
    out = tmp_path / "demo"
    outcome = colocam("demo", "--out", out, *tiny_sets)
    assert outcome.code == 0, outcome.err
    run = out / "run-0"
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<img") + page.count("<svg") > 5
    result = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    assert [*result["methods"]] == ["layercam", "colocam"]
    assert result["data"]["videos"] == 6
    for name in ("LayerCAM", "CoLo-CAM"):
        assert name in outcome.out
    (annotated,) = (run / "localized").glob("*.mp4")
    assert (probe(annotated).width, probe(annotated).height) == (48, 40)
    assert len(list(decode(annotated))) == 5
    assert len((run / "localized" / f"{annotated.stem}.csv").read_text(encoding="utf-8").splitlines()) == 6
    for path in (annotated, run / "report" / "index.html", run / "picture.jpg"):
        assert str(path) in outcome.err

    # frames with boxes are shown while it trains, and the last lines open the report and the page
    lines = outcome.err.splitlines()
    looks = [at for at, line in enumerate(lines) if line.startswith(f"picture: {run / 'picture.jpg'} shows")]
    assert len(looks) == 2  # of the classifier, then of CoLo-CAM
    start = out / "start-0"
    assert any(line.startswith(f"picture: {start / 'picture.jpg'} shows") for line in lines)
    assert looks[0] < lines.index(next(line for line in lines if line.startswith("class activation maps")))
    assert looks[1] < lines.index(next(line for line in lines if line.startswith("3 of 5")))
    drawn = cv2.imread(str(run / "picture.jpg"))
    assert drawn.shape == (2 * LONGEST * 40 // 48 + GAP, 3 * LONGEST + 2 * GAP, 3)
    assert (run / "report" / "index.html").as_uri() in lines[-2]
    program, *words = shlex.split(lines[-1].removeprefix("correct the boxes:"))
    assert program.endswith("colocam")
    assert words == ["serve", str(run), str(out / "videos" / "beetle" / "test-00.mp4"), "-o", str(out / "page")]

    # a second model starts from the ready one; a table compares both on the same frames
    alone, started = (glance.right_in(folder, out / "truth.csv") for folder in (run, start))
    assert alone.frames == started.frames
    assert f"without one: {alone.frames} frames of the test videos" in outcome.out
    for name, values in (
        ("box right", (alone.boxes, started.boxes)),
        ("class right", (alone.classes, started.classes)),
    ):
        (row,) = (line for line in outcome.out.splitlines() if f"│ {name}" in line)
        assert [cell.strip() for cell in row.split("│")[2:4]] == [f"{value:.0f} %" for value in values]

    # once more: nothing is made, decoded or trained again, and the result is the same
    learned = (run / "model.safetensors").read_bytes(), (run / "metrics.jsonl").read_bytes()
    videos = {path: path.stat().st_mtime_ns for path in out.rglob("videos/**/*.mp4")}
    monkeypatch.setattr(loop, "sgd_step", None)
    again = colocam("demo", "--out", out, *tiny_sets)
    assert again.code == 0, again.err
    assert again.out == outcome.out
    assert "making videos" not in again.err
    assert "decoding" not in again.err
    assert ((run / "model.safetensors").read_bytes(), (run / "metrics.jsonl").read_bytes()) == learned
    assert {path: path.stat().st_mtime_ns for path in out.rglob("videos/**/*.mp4")} == videos


def test_a_comparison_has_a_folder_of_its_own(small_world, colocam, tiny_sets, tmp_path):  # noqa: ARG001
    outcome = colocam("demo", "--out", tmp_path / "demo", "--compare", *tiny_sets)
    assert outcome.code == 0, outcome.err
    result = json.loads((tmp_path / "demo" / "compare-0" / "evaluation.json").read_text(encoding="utf-8"))
    assert [*result["methods"]] == ["layercam", "fcam", "colocam"]
    assert "F-CAM" in outcome.out


def test_videos_only(small_world, colocam, tmp_path):  # noqa: ARG001
    outcome = colocam("demo", "--out", tmp_path / "demo", "--videos-only", "--world-seed", "3")
    assert outcome.code == 0
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "manifest.csv",
        "truth.csv",
        "videos",
        "world.json",
    ]
    assert len(list((tmp_path / "demo" / "videos").glob("*/*.mp4"))) == 18
    assert str(tmp_path / "demo" / "manifest.csv") in outcome.err
    other = colocam("demo", "--out", tmp_path / "demo", "--videos-only", "--world-seed", "4")
    assert "contains a different world" in other.error


def test_a_demo_that_cannot_be_written(colocam, tmp_path):
    (tmp_path / "demo").write_text("a file", encoding="utf-8")
    assert "there is a file where a folder is needed" in colocam("demo", "--out", tmp_path / "demo").error


def test_a_short_one_has_few_videos_and_epochs(colocam, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "make_world", partial(make_world, frames=5, size=(48, 40)))
    seen = []
    monkeypatch.setattr(demo, "train", lambda _, run, config, **__: seen.append((run, config)) or run)
    monkeypatch.setattr(demo, "evaluate", lambda *_: sys.exit(0))
    colocam("demo", "--out", tmp_path / "demo", "--short")
    assert len(list((tmp_path / "demo" / "videos").rglob("*.mp4"))) == 24
    ((run, config),) = seen
    assert run == tmp_path / "demo" / "run-0"
    assert (config.classifier.epochs, config.localizer.epochs) == (1, 1)


def test_without_the_ready_model_the_demo_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(from_ready, "ready_run", lambda _: None)
    from_ready.start_from_ready(tmp_path, tmp_path / "run-0", None, 1.0, seed=0, sets=())
    assert "skipped: the ready model" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
