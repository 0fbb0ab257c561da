"""Learning in the background: one lesson at a time, its output, its failure."""

import queue
import sys

import pytest

from colocam.config.card import parse_card
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.labels import Correction, read_corrections
from colocam.serve import lessons as module
from colocam.serve.lessons import Lessons
from tests.helpers.served_library import LESSON, eventually

SAID = [Correction("video", 3, 0.12, "none", "cat", (), origin="page")]


def lessons_of(run, folder, made=lambda *_: None, quick=str):
    return Lessons(run, folder / "lessons", made, quick)


def wait(lessons):
    eventually(lambda: lessons.status()["state"] != "learning")
    return lessons.status()


@pytest.fixture
def command(monkeypatch):
    """``command(code)`` is called instead of ``colocam learn``."""
    return lambda code: monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", code))


def test_a_lesson_gets_the_corrections_and_a_new_folder(tmp_path, command):
    made = queue.Queue()
    command(LESSON)
    lessons = lessons_of(tmp_path, tmp_path, lambda *one: made.put(one))
    assert lessons.status()["state"] == "never"
    for number in (1, 2):
        lessons.start(SAID)
        status = wait(lessons)
        assert (status["state"], status["lines"], status["held_out"]) == ("done", ["learned"], 7)
        assert [stage["iou"] for stage in status["stages"]] == [0.5, 0.75]
        assert read_corrections(tmp_path / "lessons" / str(number) / "corrections.csv") == SAID
        new = tmp_path / "lessons" / str(number) / "run"
        assert status["path"] == new
        assert made.get(timeout=60) == (new, f"lesson {number}")
    again = lessons_of(tmp_path, tmp_path)
    assert [title for _, title in again.earlier()] == ["lesson 1", "lesson 2"]
    assert again.status()["state"] == "done"


def test_a_quick_lesson_writes_a_model_with_other_thresholds(stored_run, tmp_path):
    card = parse_card((stored_run / "model.json").read_text(), "model.json")
    quick = lambda _run: lambda said: card.model_copy(update={"threshold": 0.1 * len(said)})  # noqa: E731
    folder, seconds = lessons_of(stored_run, tmp_path, quick=quick).quick(SAID)
    assert seconds >= 0
    localizer = Localizer.load(folder, "cpu")
    assert localizer.card == card.model_copy(update={"threshold": 0.1})
    again = lessons_of(stored_run, tmp_path, quick=quick)
    assert [title for _, title in again.earlier()] == ["thresholds 1"]


def test_one_lesson_at_a_time_and_failures_are_shown(tmp_path, command):
    command("import time; time.sleep(60)")
    lessons = lessons_of(tmp_path, tmp_path)
    lessons.start(SAID)
    with pytest.raises(ColocamError, match="a lesson is running"):
        lessons.start(SAID)
    lessons.stop()
    assert wait(lessons)["state"] == "cancelled"
    command("raise SystemExit('error: no frame')")
    failing = lessons_of(tmp_path, tmp_path)
    failing.start(SAID)
    status = wait(failing)
    assert (status["state"], status["lines"], status["path"]) == ("failed", ["error: no frame"], None)


def test_nothing_to_learn_and_files_that_cannot_learn(tmp_path):
    with pytest.raises(ColocamError, match="an ONNX file cannot learn"):
        lessons_of(tmp_path / "model.onnx", tmp_path).start(SAID)
    with pytest.raises(ColocamError, match="nothing to learn"):
        lessons_of(tmp_path, tmp_path).start([])


def test_the_page_says_from_the_start_that_a_model_cannot_learn(served, stored_run, tmp_path):
    said = served.client.get("/api/videos").json()["cannot_learn"]
    assert said.startswith("an ONNX file cannot learn")
    assert served.client.get("/api/lessons").json()["cannot_learn"] == said
    assert lessons_of(stored_run, tmp_path).refusal == ""


def test_the_ready_model_learns_from_the_run_folder_that_its_file_lies_in(tmp_path, command):
    command("import sys; print(sys.argv[1])")
    ready = tmp_path / "pets"
    ready.mkdir()
    for name in ("pets.onnx", "config.yaml", "data.json", "model.json", "model.safetensors"):
        (ready / name).touch()
    lessons = lessons_of(ready / "pets.onnx", tmp_path)
    assert lessons.refusal == ""
    lessons.start(SAID)
    assert wait(lessons)["lines"] == [str(ready)]
    (ready / "config.yaml").unlink()
    assert lessons_of(ready / "pets.onnx", tmp_path).refusal.startswith("an ONNX file cannot learn")
