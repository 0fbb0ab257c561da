"""The keywords of ``Localizer.load``: type checkers and completion know them, and they are the fields of Options."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from colocam.inference import localizer as module
from colocam.inference import options
from colocam.inference.options import OptionKeywords, Options

CALLS = """
from colocam.inference.localizer import Localizer

Localizer.load("run", smooth="online", tag="cat", threshold=0.5, masks=True)
Localizer.load("run", smoth="online")
Localizer.load("run", smooth="sometimes")
Localizer.load("run", masks="yes")
"""


def test_the_keywords_are_the_fields():
    assert get_type_hints(OptionKeywords) == get_type_hints(Options)
    assert list(OptionKeywords.__annotations__) == [field.name for field in fields(Options)]


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
