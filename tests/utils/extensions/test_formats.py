"""A label format that is added from outside, by a file that the command line loads and from Python."""

import json
import re
from pathlib import Path

import pytest

from colocam.inference.localize import localize_file
from colocam.labels import FORMATS, Format

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "extend" / "format.md"
EXTENSION = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
"""The code that the guide shows."""


@pytest.fixture
def table(trained, tmp_path, make_video, square_video):
    video = make_video(tmp_path / "my video.mp4", square_video("cat", 5, 6)[0])
    return localize_file(trained, video, tmp_path / "boxes", annotate=False).table


def test_a_format_in_a_file_of_ones_own(table, tmp_path, new_colocam, monkeypatch):
    """Registered in ten lines, listed by the help, chosen by its name; the library is not changed."""
    extension = tmp_path / "my_format.py"
    extension.write_text(EXTENSION, encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(extension))
    monkeypatch.setenv("COLUMNS", "100")
    done = new_colocam("export", table, "--to", "mine", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "out" / "my video.json").read_text())
    lines = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    assert found == [[one[2], *map(float, one[4:8])] for one in lines if one[4]]
    assert re.search(r"mine +a list of boxes per video", new_colocam("export", "--help").out)
    monkeypatch.delenv("COLOCAM_EXTENSIONS")
    without = new_colocam("export", table, "--to", "mine", "-o", tmp_path / "other")
    assert without.error.startswith("error: --to must be a label format, got 'mine'")


@pytest.mark.parametrize(
    ("content", "told"), [("1 / 0", "division by zero"), ("def", "invalid syntax"), (None, "No such file")]
)
def test_an_extension_that_cannot_be_loaded(colocam, tmp_path, monkeypatch, content, told):
    path = tmp_path / "broken.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    monkeypatch.setenv("COLOCAM_EXTENSIONS", str(path))
    error = colocam("report", tmp_path).error
    assert error.startswith(f"error: cannot load the extension {path} (COLOCAM_EXTENSIONS): ")
    assert told in error


def test_an_extension_may_be_a_module(colocam, tmp_path, monkeypatch):
    (tmp_path / "my_module_of_formats.py").write_text(EXTENSION, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FORMATS, "mine", Format("replaced by the extension"))
    monkeypatch.setenv("COLOCAM_EXTENSIONS", "my_module_of_formats")
    assert "a list of boxes per video" in colocam("export", "--help").out
