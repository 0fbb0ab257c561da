"""Progress: plain lines in a log, a bar on a terminal, and honest counts after a resumption."""

import io
import re
import sys
import threading
from types import SimpleNamespace

import pytest

from colocam.utils import progress as module
from colocam.utils.progress import progress, say


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only when told to."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
    return clock


def test_names_cannot_steer_the_terminal(capsys):
    say("error: a\nb\x1b[31m\r\u202ec\u2028ü — 猫")
    assert capsys.readouterr() == ("", "error: a\\nb\\x1b[31m\\r\\u202ec\\u2028ü — 猫\n")


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(capsys, monkeypatch):
    """Also while nothing advances."""
    monkeypatch.setattr(module, "SECONDS_TO_FIRST_LINE", 0.01)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.05)
    said = threading.Semaphore(0)
    monkeypatch.setattr(module, "say", lambda text: (say(text), said.release()))
    with progress("work", 40, unit="frames") as advance:
        advance(10, note="loss 25")
        for _ in range(3):
            assert said.acquire(timeout=60)
        advance(30)
    told = capsys.readouterr().err
    assert re.search(r"^work: 10/40 in \d+ s, [\d.]+ frames/s, \d+ s left  loss 25$", told, re.MULTILINE)
    assert re.fullmatch(r"work: 40/40 in \d+ s, [\d.]+ frames/s  loss 25", told.splitlines()[-1])


@pytest.mark.parametrize(
    ("total", "done", "steps", "seconds", "line"),
    [
        (3, 0, 3, 0.5, "work: 3/3 in 0 s, 6.0 it/s"),
        (100, 80, 10, 10.0, "work: 90/100 in 10 s, 1.0 it/s, 10 s left"),  # resumed: the rate is that of this run
        (5, 0, 0, 1.0, "work: 0/5 in 1 s, 0.0 it/s"),
    ],
)
def test_quick_work_is_one_line(capsys, clock, total, done, steps, seconds, line):
    with progress("work", total, done=done) as advance:
        clock.now += seconds
        advance(steps)
    assert capsys.readouterr().err == f"{line}\n"


def test_an_error_is_not_reported_as_done(capsys):
    with pytest.raises(ValueError, match="no"), progress("work", 5):
        raise ValueError("no")
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    """A stream that rich takes for a terminal."""

    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Terminal())
        with progress("training", 10, unit="steps", done=4) as advance:
            for _ in range(6):
                advance(note="epoch 2/3")
        shown = sys.stderr.getvalue()
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).rsplit("training", 1)[1]
    assert all(part in last for part in ("━━━━", "10/10", "steps/s", "left", "epoch 2/3"))
    assert " 4/10" in shown
