"""Learning in the background: one lesson at a time, its output, its failure."""

import sys
import time

import pytest

from colocam.corrections import Correction, read_corrections
from colocam.errors import ColocamError
from colocam.serve.lessons import Lessons

SAID = [Correction("film", 3, 0.12, "none", "cat", (), origin="page")]
WRITES = "import sys, pathlib; print('learnt'); pathlib.Path(sys.argv[4]).mkdir()"


def wait(lessons):
    end = time.monotonic() + 60
    while lessons.status()["state"] == "learning":
        assert time.monotonic() < end
        time.sleep(0.01)
    return lessons.status()


def test_a_lesson_gets_the_corrections_and_a_new_folder(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    lessons = Lessons(run, tmp_path / "lessons", (sys.executable, "-c", WRITES))
    assert lessons.status()["state"] == "never"
    for number in (1, 2):
        lessons.start(SAID)
        assert wait(lessons) == {"state": "done", "lines": ["learnt"], "run": f"lessons/{number}/run"}
        assert read_corrections(tmp_path / "lessons" / str(number) / "corrections.csv") == SAID
        assert (tmp_path / "lessons" / str(number) / "run").is_dir()


def test_one_lesson_at_a_time_and_failures_are_shown(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    lessons = Lessons(run, tmp_path / "lessons", (sys.executable, "-c", "import time; time.sleep(60)"))
    lessons.start(SAID)
    with pytest.raises(ColocamError, match="a lesson is running"):
        lessons.start(SAID)
    lessons.stop()
    assert wait(lessons)["state"] == "failed"
    failing = Lessons(run, tmp_path / "lessons", (sys.executable, "-c", "raise SystemExit('error: no frame')"))
    failing.start(SAID)
    assert wait(failing) == {"state": "failed", "lines": ["error: no frame"], "run": ""}


def test_nothing_to_learn_and_files_that_cannot_learn(tmp_path):
    with pytest.raises(ColocamError, match="an ONNX file cannot learn"):
        Lessons(tmp_path / "model.onnx", tmp_path / "lessons").start(SAID)
    with pytest.raises(ColocamError, match="nothing to learn"):
        Lessons(tmp_path, tmp_path / "lessons").start([])
