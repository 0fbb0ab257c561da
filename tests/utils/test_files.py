"""A file is whole or not there, and what the disk refuses becomes one line."""

import errno
import json
import os
import stat

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.utils.files import atomic_folder, atomic_path, explain_os_errors, write_array, write_json, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_success_leaves_the_target_alone_in_new_folders(tmp_path):
    target = tmp_path / "a" / "b" / "file.bin"
    with atomic_path(target) as temporary:
        assert temporary.parent == target.parent
        assert temporary.suffix == ".bin"
        temporary.write_bytes(b"12")
        assert not target.exists()
    assert target.read_bytes() == b"12"
    assert names(target.parent) == ["file.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_inside_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "file.txt"
    write_text(target, "old")

    def write_half():
        with atomic_path(target) as temporary:
            temporary.write_text("ne")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_a_body_that_writes_nothing_is_an_error_and_makes_no_file(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "file.txt"):
        pass
    assert names(tmp_path) == []


def test_the_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    order = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (order.append(names(tmp_path)), fsync(number)))
    write_text(tmp_path / "file.txt", "x")
    assert len(order) == 1
    assert "file.txt" not in order[0]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "no permission"),
        (errno.EPERM, "no permission"),
        (errno.ENOTDIR, "there is a file where a folder is needed"),
    ],
)
def test_what_the_disk_refuses_becomes_one_line(tmp_path, number, says):
    def refuse():
        with atomic_path(tmp_path / "file.txt") as temporary:
            temporary.write_text("half")
            raise OSError(number, os.strerror(number))

    with pytest.raises(ColocamError, match=says) as refused:
        refuse()
    assert str(refused.value).startswith(f"cannot write {tmp_path / 'file.txt'}: ")
    assert "\n" not in str(refused.value)
    assert names(tmp_path) == []


def test_a_disk_that_fills_up_under_numpy_or_python(tmp_path):
    for write in (lambda file: file.write(b"0" * 10), lambda file: np.zeros(10_000).tofile(file)):
        with (
            pytest.raises(ColocamError, match="the disk is full"),
            explain_os_errors(tmp_path),
            open("/dev/full", "wb", buffering=0) as file,  # noqa: PTH123 - unbuffered
        ):
            write(file)
    with pytest.raises(ColocamError, match="the disk is full"), explain_os_errors(tmp_path):
        raise OSError("1000 requested and 131 written")  # numpy's words for a short write


def test_other_errors_pass_through():
    def fail(error):
        with explain_os_errors("x"):
            raise error

    for error in (OSError(errno.EIO, "broken"), OSError("odd"), ValueError("no")):
        with pytest.raises(type(error), match=str(error.args[-1])):
            fail(error)


def test_targets_below_a_file_or_in_place_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.json").mkdir()
    for target in (tmp_path / "file" / "a.json", tmp_path / "file" / "deeper" / "a.json"):
        with pytest.raises(ColocamError, match="there is a file where a folder is needed"):
            write_json(target, 1)
    with pytest.raises(ColocamError, match="there is a folder where a file is needed"):
        write_json(tmp_path / "folder.json", 1)
    assert names(tmp_path) == ["file", "folder.json"]


def test_json_is_readable_by_anyone(tmp_path):
    value = {"grüße": [1, 2.5, None, True], "x": {"y": "猫"}}
    write_json(tmp_path / "a.json", value)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert "猫" in text
    assert text.endswith("}\n")
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "a.json", wrong)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == value
    assert not stat.S_ISLNK((tmp_path / "a.json").lstat().st_mode)


# folders


def fill(target, names=("a.txt", "sub/b.txt"), marker=".mark"):
    with atomic_folder(target, marker) as folder:
        for name in names:
            write_text(folder / name, name)
        assert folder.parent == target.parent


def test_a_folder_appears_whole(tmp_path):
    target = tmp_path / "new" / "out"
    with atomic_folder(target, ".mark") as folder:
        (folder / "a").write_text("x")
        assert not target.exists()
    assert names(target) == [".mark", "a"]
    assert names(target.parent) == ["out"]


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
    for broken in ("", "[]", "{}", '{"files": "3"}'):
        (target / ".mark").write_text(broken)
        with pytest.raises(ColocamError, match="holds other files"):
            fill(target, ["d.txt"])
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path, error):
    target = tmp_path / "out"
    fill(target)

    def half():
        with atomic_folder(target, ".mark") as folder:
            (folder / "half").write_text("x")
            raise error

    with pytest.raises(error):
        half()
    assert names(target) == [".mark", "a.txt", "sub"]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_cannot_take_its_name_gives_the_old_one_back(tmp_path, monkeypatch):
    target = tmp_path / "out"
    fill(target)
    rename = type(target).rename

    def refuse(path, to):
        if str(path).endswith(".tmp"):
            raise OSError(errno.EACCES, "no")
        return rename(path, to)

    monkeypatch.setattr(type(target), "rename", refuse)
    with pytest.raises(ColocamError, match="no permission"):
        fill(target, ["c.txt"])
    assert names(target) == [".mark", "a.txt", "sub"]
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.ones((3, 4), np.float16).T, np.zeros((0, 5), np.float32)]
)
def test_arrays_are_read_by_numpy(tmp_path, array):
    write_array(tmp_path / "folder" / "a.npy", array)
    found = np.load(tmp_path / "folder" / "a.npy", allow_pickle=False)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a.npy"]
