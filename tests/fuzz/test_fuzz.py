"""The first inputs of ``make fuzz``; and the fuzzer sees the faults that it is made to see."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.case import Case, snapshot
from tests.fuzz.verdict import CRASH, ERROR, FILES, HANG, MEMORY, RESULT, TRACEBACK, UNCLEAN, Ended, Verdict, judge

ROOT = Path(__file__).parents[2]
COUNT = 18


def test_the_first_inputs_show_no_fault(tmp_path):
    """In a process of its own, which forks a child for each input: that of the tests has threads."""
    words = [sys.executable, "-m", "tests.fuzz", "--count", str(COUNT), "--seed", "0", "--faults", str(tmp_path)]
    variables = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    totals = re.search(r"^all +(\d+) +(\d+) +(\d+)", done.stdout, re.MULTILINE)
    assert totals is not None
    inputs, results, errors = map(int, totals.groups())
    assert inputs == COUNT
    assert min(results, errors) >= COUNT // 10, "most inputs must not end in the same way"


def prepared(root, error="", outside="", before=None, outputs=(), argv=("review", "t.csv")):
    """The folder of an input that has ended."""
    (root / "cwd").mkdir()
    (root / "tmp").mkdir()
    Case(list(argv), list(outputs)).save(root / "case.json")
    for name in before or {}:
        (root / "cwd" / name).write_text("sound")
    (root / "before.json").write_text(json.dumps({**snapshot(root / "cwd"), **(before or {})}))
    (root / "stderr").write_text(error)
    (root / "outside").write_text(outside)
    return root


STACK = 'Traceback (most recent call last):\n  File "/x/colocam/video/reader.py", line 7, in probe\nValueError: x\n'
DUMP = 'Fatal Python error\n\nCurrent thread (most recent call first):\n  File "/x/colocam/a.py", line 3 in b\n'


@pytest.mark.parametrize(
    ("error", "ended", "verdict"),
    [
        ("wrote out.csv\n", Ended(0, 0), Verdict(RESULT)),
        ("warning: x\nerror: y\n", Ended(1, 0), Verdict(ERROR)),
        ("Usage: colocam\n", Ended(2, 0), Verdict(ERROR)),
        (STACK, Ended(1, 0), Verdict(TRACEBACK, "review: ValueError reader.py:7 probe")),
        (STACK, Ended(0, 0), Verdict(TRACEBACK, "review: ValueError reader.py:7 probe")),
        (DUMP, Ended(-6, 0), Verdict(CRASH, "review: a.py:3 b")),
        (DUMP, Ended(-9, 0, HANG), Verdict(HANG, "review: a.py:3 b")),
        ("error: y\n", Ended(1, 3 << 30), Verdict(MEMORY, "review: ?")),
        ("error: y\nz\n", Ended(1, 0), Verdict(UNCLEAN, "review: exit 1, 1 lines 'error:' of 2")),
        ("error: y\nerror: z\n", Ended(1, 0), Verdict(UNCLEAN, "review: exit 1, 2 lines 'error:' of 2")),
        ("[ WARN:0] imread\nerror: y\n", Ended(1, 0), Verdict(UNCLEAN, "review: [ WARN#] imr#")),
    ],
)
def test_verdicts(tmp_path, error, ended, verdict):
    assert judge(prepared(tmp_path, error), ended) == verdict


def test_files_outside_the_outputs_are_faults(tmp_path):
    root = prepared(tmp_path, before={"t.csv": "another digest"}, outputs=["out"])
    assert judge(root, Ended(0, 0)) == Verdict(FILES, "review: changed t.csv")
    (root / "before.json").write_text(json.dumps(snapshot(root / "cwd")))
    (root / "cwd" / "out").mkdir()
    (root / "cwd" / "out" / "result.csv").touch()
    assert judge(root, Ended(0, 0)) == Verdict(RESULT)
    (root / "cwd" / "outer").touch()
    assert judge(root, Ended(0, 0)) == Verdict(FILES, "review: wrote outer, which is no output")
    (root / "outside").write_text("os.mkdir '/x'\n")
    assert judge(root, Ended(0, 0)).kind == FILES
