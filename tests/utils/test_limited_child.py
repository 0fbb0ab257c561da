"""Functions that run in a limited child: what they return, and what becomes of their errors, crashes and appetites."""

import os
import time

import pytest

from colocam.errors import ArgumentError, ColocamError
from colocam.utils.limited_child import run_limited, serve_function


def answer(folder, text):
    (folder / "large").write_text(text * 2)
    return {"length": len(text)}


def fail(folder, how):  # noqa: ARG001 - every function gets it
    if how == "refuse":
        raise ColocamError("a.xml: not XML")
    if how == "argument":
        raise ArgumentError("tolerance", "must be 0 or more")
    if how == "strange":
        raise KeyError("\nframe")
    if how == "missing":
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")
    if how == "crash":
        os._exit(7)
    if how == "grow":
        return {"grown": len(b" " * (1 << 30))}
    time.sleep(60)
    return {}


def main(control, life):
    serve_function(control, life, answer, fail)


def call(folder, function, *, seconds=60.0, **arguments):
    limits = {"memory": 64 << 20, "seconds": seconds}
    return run_limited(__name__, function, arguments, name="a.xml", folder=folder, **limits)


def test_what_a_function_returns_and_writes(tmp_path):
    assert call(tmp_path, "answer", text="boxes") == {"length": 5}
    assert (tmp_path / "large").read_text() == "boxesboxes"


@pytest.mark.parametrize(("how", "line"), [
    ("refuse", "a.xml: not XML"),
    ("strange", "a.xml: cannot be read (KeyError: '\\nframe'): the file may be damaged"),
    ("crash", "a.xml: reading it ended with exit code 7: the file may be damaged, or too large"),
    ("grow", "a.xml: takes more than 64 MiB of memory: split the file"),
])  # fmt: skip
def test_every_end_is_one_line(tmp_path, how, line):
    with pytest.raises(ColocamError) as error:
        call(tmp_path, "fail", how=how)
    assert str(error.value) == line


def test_a_function_that_hangs_is_ended(tmp_path):
    with pytest.raises(ColocamError, match=r"^a\.xml: not read within 0\.5 s: split the file$"):
        call(tmp_path, "fail", how="hang", seconds=0.5)


def test_errors_of_arguments_and_extras_keep_their_kind(tmp_path):
    with pytest.raises(ArgumentError) as error:
        call(tmp_path, "fail", how="argument")
    assert error.value.argument == "tolerance"
    with pytest.raises(ModuleNotFoundError) as missing:
        call(tmp_path, "fail", how="missing")
    assert missing.value.name == "pyarrow"
