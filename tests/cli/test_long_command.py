"""A long command shows that it has begun while its libraries are imported."""

import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from colocam.cli import shared_options


@pytest.fixture
def timers(monkeypatch):
    """The started timers; each prints at once."""
    started = []

    def make(seconds, function, arguments):
        timer = Mock(seconds=seconds)
        timer.start = lambda: (started.append(timer), function(*arguments))
        return timer

    monkeypatch.setattr(shared_options, "Timer", make)
    return started


@pytest.mark.parametrize("name", ["localize", "export-model", "evaluate"])
def test_a_new_process_says_that_it_is_loading(name, timers, colocam, monkeypatch, tmp_path):
    monkeypatch.setattr(shared_options, "sys", SimpleNamespace(modules={}))  # as before torch is imported
    monkeypatch.setattr("colocam.inference.localize.localize_videos", lambda *_, **__: [])
    arguments = {
        "localize": (tmp_path, "video.mp4", "-o", tmp_path / "out"),
        "export-model": (tmp_path, "-o", tmp_path / "model.txt"),
        "evaluate": (tmp_path,),
    }
    outcome = colocam(name, *arguments[name])
    assert outcome.err.splitlines()[0] == f"{name}: loading"
    (timer,) = timers
    timer.cancel.assert_called_once()
    assert timer.seconds < 3


def test_nothing_is_said_where_nothing_has_to_be_loaded(timers, colocam, tmp_path):
    assert len(colocam("evaluate", tmp_path).err.splitlines()) == 1
    assert not timers


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("sys.exit(3)", 3, "row, last work"),
        ("None", 0, "row, last work"),
        ("sys.exit('text')", 1, "row, last work, usual end"),
        ("1 / 0", 1, "row, last work, usual end"),
    ],
)
def test_a_process_ends_after_its_last_work_without_being_taken_apart(ending, code, said):
    """Only where Python need not print what went wrong."""
    program = f"""
import atexit, sys, types
from colocam import cli

def main():
    sys.modules["torch"] = types.ModuleType("torch")
    atexit.register(print, ", last work", end="")
    print("row", end="")
    {ending}

atexit.register(print, ", usual end", end="")  # of what was there before
cli.main = main
cli.run()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, said)
