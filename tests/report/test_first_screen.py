"""The first screen of the report: a sentence, pictures, confusions and the next command."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from colocam.evaluation.metrics import CorLoc
from colocam.report.gallery import gallery
from colocam.report.next_steps import serve_command
from colocam.report.page import confusion_table, pictures, render, sentence

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"
CONFUSION = {"bus": {"bus": 7, "cat": 3}, "cat": {"cat": 5}, "<i>owl": {"bus": 1, "<i>owl": 8}}


def add_confusion(run, counts=CONFUSION):
    path = run / "evaluation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"confusion": counts}))


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (
            CorLoc(70.0, frames=75.0, classes={"bus": 80.0, "rocket": 68.0, "empty": None}),
            "3 of 4 boxes are right; worst: rocket, 68 %.",
        ),
        (
            CorLoc(70.0, frames=75.0, classes={"bus": 80.25, "cat": 66.66}),
            "3 of 4 boxes are right; worst: cat, 66.7 %.",
        ),
        (CorLoc(100.0, frames=100.0, classes={"bus": 100.0, "cat": 100.0}), "4 of 4 boxes are right."),
        (CorLoc(50.0, frames=50.0, classes={"bus": 50.0}), "2 of 4 boxes are right."),
        (CorLoc(62.5), "62.5 % of the boxes are right, as a mean over classes."),
    ],
)
def test_the_sentence(cell, told):
    assert sentence(cell, 4).replace("\N{NO-BREAK SPACE}", " ") == told


def test_one_good_one_typical_and_one_bad_picture(finished):
    groups = gallery(finished / "cases.npz")
    overlaps = {group.name: [case.images[-1].overlap for case in group.cases] for group in groups}
    words, (good, typical, bad) = zip(*((word, case.images[-1]) for word, case in pictures(groups)), strict=True)
    assert words == ("Good", "Typical", "Bad")
    assert good.overlap == max(overlaps["best"])
    assert typical.overlap == sorted(overlaps["typical"])[1]
    assert bad.overlap == min(overlaps["worst"])
    assert {image.title for image in (good, typical, bad)} == {"CoLo-CAM"}
    assert pictures([group for group in groups if group.name == "empty"]) == []


def test_confusions_as_table_and_in_words():
    table = confusion_table(CONFUSION)
    assert table.columns == ("bus", "cat", "<i>owl")
    assert [(tag, counts) for tag, counts, _ in table.rows] == [
        ("bus", (7, 3, 0)),
        ("cat", (0, 5, 0)),
        ("<i>owl", (1, 0, 8)),
    ]
    assert table.often == "Most frequent confusion: bus mistaken for cat, in 3 of 10 frames."
    assert confusion_table({"bus": {"bus": 2}}).often == "No frame was mistaken for another class."
    assert confusion_table({}) is None
    found_only = confusion_table({"bus": {"ship": 2}})
    assert found_only.columns == ("bus", "ship")
    assert not table.folded
    assert confusion_table({f"class {k}": {f"class {k}": 1} for k in range(13)}).folded


def test_the_first_screen_comes_before_everything_else(run):
    add_confusion(run)
    (run / "model.json").write_text("{}")
    html = render(run)
    head = html[html.index("<body>") : html.index('<dl class="stats">')]
    assert re.search(r"\d+ of 300 boxes are right; worst: ", head)
    assert head.count("<img") == 3
    assert "bus mistaken for cat" in head
    assert "&lt;i&gt;owl" in head
    assert head.count("<td") == 9
    assert f"colocam review {run}" in head
    assert "color" not in head


def test_a_run_without_confusions_or_model_has_neither_table_nor_next_step(run):
    html = render(run)
    head = html[html.index("<body>") : html.index('<dl class="stats">')]
    assert "<table" not in head
    assert "Next:" not in head
    (run / "evaluation.json").unlink()
    assert f"colocam evaluate {run} --boxes TABLE" in render(run)


def test_frames_to_check_say_how_to_open_them(make_run, add_review, tmp_path, monkeypatch):
    run = make_run("my run")
    (run / "model.json").write_text("{}")
    data = json.loads((STORED / "data.json").read_text())
    for clip in data["clips"]:
        path = tmp_path / "some videos" / f"{clip['name']}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        clip["path"] = str(path)
    (run / "data.json").write_text(json.dumps(data))
    add_review(run, ("cat/test-0", 4), ("cat/test-0", 9), ("bus/test-0", 4), ("gone/video", 4))
    monkeypatch.chdir(tmp_path)
    line = "colocam serve 'my run' 'some videos/cat/test-0.mp4' 'some videos/bus/test-0.mp4'"
    names = [case.clip for case in gallery(run / "review.npz")[0].cases]
    assert serve_command(Path("my run"), names) == line
    html = render(Path("my run")).replace("&#39;", "'")
    assert html.count(line) == 2, "as the next step, and beside the frames"
    (run / "data.json").write_text("{")
    assert serve_command(Path("my run"), names) == "colocam serve 'my run'"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_nothing_is_wider_than_the_screen(run, add_review, tmp_path, width):
    names = [f"a class {k}" for k in range(10)]
    add_confusion(run, {name: dict.fromkeys(names, 12) for name in names})
    add_review(run, ("a/" + "very-long-name-" * 8, 4))
    # The policy of the page forbids scripts: the page is measured inside a frame of this width.
    (tmp_path / "page.html").write_text(render(run), encoding="utf-8")
    (tmp_path / "frame.html").write_text(
        f'<iframe id="f" src="page.html" style="border:0;width:{width}px;height:900px"></iframe>'
        "<script>f.onload = () => { const page = f.contentDocument.documentElement;"
        "const shown = page.querySelectorAll('.examples img').length;"
        "document.title = `${shown} pictures, ${page.scrollWidth - page.clientWidth} pixels beyond` }</script>"
    )
    asked = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    asked += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    asked.append(str(tmp_path / "frame.html"))
    dom = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=120).stdout
    assert "<title>3 pictures, 0 pixels beyond</title>" in dom
