"""A folder is whole or not there, and only files that are as they were written are replaced."""

import errno
import json
import os
from pathlib import Path

import pytest

from colocam.errors import ColocamError
from colocam.utils.files import atomic_folder, write_text
from colocam.utils.locks import locked


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(target, names=("a.txt", "sub/b.txt"), marker=".mark", text=""):
    with atomic_folder(target, marker) as folder:
        for name in names:
            write_text(folder / name, name + text)


def test_a_folder_of_ours_is_replaced_and_any_other_left_alone(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    fill(target)  # an empty one
    fill(target, ["c.txt"])
    assert names(target) == [".mark", "c.txt"]
    with pytest.raises(ColocamError, match="holds other files: choose another folder, or empty it"):
        fill(target, ["d.txt"], marker=".other")
    (target / "deep" / "er").mkdir(parents=True)
    (target / "deep" / "er" / "mine.txt").write_text("mine")
    with pytest.raises(ColocamError, match="holds other files"):
        fill(target, ["d.txt"])
    assert (target / "deep" / "er" / "mine.txt").read_text() == "mine"
    for broken in ("", "[]", "{}", '{"files": "3"}', '{"files": 3}', '{"files": {"c.txt": 3}}'):
        (target / ".mark").write_text(broken)
        with pytest.raises(ColocamError, match="holds other files"):
            fill(target, ["d.txt"])
    assert names(tmp_path) == ["out"]
    with pytest.raises(ColocamError, match="there is a file where a folder is needed"):
        fill(target / "c.txt")


def test_a_renamed_file_counts_as_another(tmp_path):
    """As many files as before, but one is not ours."""
    fill(tmp_path / "out")
    (tmp_path / "out" / "a.txt").rename(tmp_path / "out" / "notes.txt")
    with pytest.raises(ColocamError, match="holds other files"):
        fill(tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").exists()


def test_a_changed_file_is_kept(tmp_path):
    fill(tmp_path / "out")
    (tmp_path / "out" / "sub" / "b.txt").write_text("corrected")
    with pytest.raises(ColocamError, match=r"b\.txt was changed after it was exported: choose another folder"):
        fill(tmp_path / "out")
    assert (tmp_path / "out" / "sub" / "b.txt").read_text() == "corrected"


def test_a_link_in_the_place_of_a_file_is_foreign(tmp_path):
    fill(tmp_path / "out", ["a.txt"])
    (tmp_path / "out" / "a.txt").rename(tmp_path / "mine.txt")
    (tmp_path / "out" / "a.txt").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(ColocamError, match="holds other files"):
        fill(tmp_path / "out", ["a.txt"])
    assert (tmp_path / "mine.txt").exists()


def test_a_marker_cannot_name_files_elsewhere(tmp_path):
    fill(tmp_path / "out", ["a.txt"])
    (tmp_path / "mine.txt").write_text("mine")
    marker = tmp_path / "out" / ".mark"
    known = json.loads(marker.read_text())["files"]
    marker.write_text(json.dumps({"files": {**known, "../mine.txt": ["x"], str(tmp_path / "mine.txt"): ["x"]}}))
    fill(tmp_path / "out", ["b.txt"])
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert names(tmp_path / "out") == [".mark", "b.txt"]


def test_missing_files_do_not_matter(tmp_path):
    fill(tmp_path / "out")
    (tmp_path / "out" / "a.txt").unlink()
    fill(tmp_path / "out", ["c.txt"])
    assert names(tmp_path / "out") == [".mark", "c.txt"]


def test_the_current_folder_and_a_link(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for text in ("1", "2"):
        fill(tmp_path / "link", text=text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "a.txt").read_text() == "a.txt" + text
    monkeypatch.chdir(tmp_path / "real")
    fill(Path(), ["c.txt"])
    assert sorted(os.listdir()) == [".mark", "c.txt"]  # noqa: PTH208 - of the folder that the process is in
    assert names(tmp_path) == ["link", "real"]
    (tmp_path / "new").symlink_to("made")
    fill(tmp_path / "new", ["c.txt"])
    assert names(tmp_path / "made") == [".mark", "c.txt"]


@pytest.mark.parametrize("moment", range(1, 5))
def test_an_export_stopped_while_it_replaces_files_can_be_repeated(tmp_path, monkeypatch, moment):
    target = tmp_path / "out"
    fill(target)
    replace, calls = Path.replace, []

    def refuse(path, to):
        calls.append(path)
        if len(calls) == moment + 1:  # the first one is the marker of the new files
            raise OSError(errno.EACCES, "no")
        return replace(path, to)

    def again():
        with atomic_folder(target, ".mark") as folder:
            (folder / "a.txt").write_text("new")
            (folder / "c.txt").write_text("new")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(ColocamError, match="no permission"):
            again()
    fill(target, ["d.txt"])
    assert names(target) == [".mark", "d.txt"]


def test_two_exports_into_one_folder(tmp_path):
    def both(folder):
        with atomic_folder(folder, ".mark") as first:
            (first / "a.txt").write_text("first")
            with pytest.raises(ColocamError, match=r"is in use by process \d+ on .*: wait until it ends"):
                fill(folder)

    both(tmp_path / "out")
    both(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "first"
    with locked(tmp_path, "other"):
        fill(tmp_path / "third")
