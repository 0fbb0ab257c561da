"""A file is whole or not there, and what the disk refuses becomes one line."""

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.utils.files import (
    atomic_path,
    explain_os_errors,
    parse_json,
    plain,
    read_array,
    refuse_replacing,
    stream_json,
    write_json,
    write_text,
)

UMASK = os.umask(0)
os.umask(UMASK)


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
    with pytest.raises(ColocamError, match="the name is too long: choose a shorter one"):
        write_json(tmp_path / ("a" * 300), 1)
    assert names(tmp_path) == ["file", "folder.json"]


def test_temporary_names_cannot_be_guessed_and_fit_any_name(tmp_path):
    seen = set()
    for _ in range(50):
        with atomic_path(tmp_path / ("a" * 250 + ".txt")) as temporary:
            temporary.write_text("x")
            seen.add(temporary.name)
            assert temporary.stat().st_mode & 0o777 == 0o666 & ~UMASK
    assert len(seen) == 50


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_json(pipe, [1])
    assert pipe.is_fifo()  # before joining: without a writer the reader would wait for ever
    reader.join()
    assert json.loads(found[0]) == [1]
    assert names(tmp_path) == ["pipe.json"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("old")
    (tmp_path / "a.txt").symlink_to("real/a.txt")
    (tmp_path / "new.txt").symlink_to("real/b.txt")
    write_text(tmp_path / "a.txt", "new")
    write_text(tmp_path / "new.txt", "made")
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text() == "new"
    assert (tmp_path / "real" / "b.txt").read_text() == "made"
    assert names(tmp_path / "real") == ["a.txt", "b.txt"]
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(ColocamError, match=r"cannot write .*loop\.txt: the link leads to itself"):
        write_text(tmp_path / "loop.txt", "x")
    assert (tmp_path / "loop.txt").is_symlink()


def test_a_device_is_written_to(tmp_path):
    """Through links: replacing the device itself, as root could, would harm the machine that runs this test."""
    (tmp_path / "null").symlink_to("/dev/null")
    write_text(tmp_path / "null", "x")
    assert (tmp_path / "null").readlink() == Path("/dev/null")
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(ColocamError, match=r"cannot write .*full: the disk is full"):
        write_text(tmp_path / "full", "x")
    assert (tmp_path / "full").readlink() == Path("/dev/full")


def test_standard_output_goes_on_behind_what_is_there(tmp_path):
    """As /dev/stdout, a link leads to an open file here; it is appended to, and the process can print more."""
    code = """
from pathlib import Path
from colocam.utils.files import write_text
write_text(Path("stdout"), "two\\n")
print("three")
"""
    log = tmp_path / "log"
    log.write_text("one\n")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    with log.open("a") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True, cwd=tmp_path)
    assert log.read_text() == "one\ntwo\nthree\n"
    assert names(tmp_path) == ["log", "stdout"]


def test_a_damaged_array_counts_as_none(tmp_path):
    """NumPy parses the header as Python, and the end of this one is missing."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    assert read_array(tmp_path / "a.npy") is None


def test_files_of_others_are_not_replaced(tmp_path):
    mine, ours, new = tmp_path / "mine.json", tmp_path / "ours.json", tmp_path / "new.json"
    mine.write_text('{"format": 1}')
    with pytest.raises(
        ColocamError, match=r"mine\.json exists and is not a result: choose another file, or move it away"
    ):
        refuse_replacing(mine, b'"what"', "result")
    for text in ('{"what": 1}', "x" * 200_000 + '{"what": 1}', ""):  # at the beginning, at the end, nothing to lose
        ours.write_text(text)
        refuse_replacing(ours, b'"what"', "result")
    for harmless in (new, Path("/dev/null"), tmp_path):
        refuse_replacing(harmless, b'"what"', "result")


def test_long_lists_are_streamed_as_the_same_json(tmp_path):
    """Items are made one at a time: at most one is alive when the next one is made."""
    alive = []

    class Item(dict):
        def __del__(self):
            alive.remove(id(self))

    def items():
        for number in range(9):
            assert len(alive) <= 1
            item = Item(number=number, text="é\n", inner={"list": [1, None]})
            alive.append(id(item))
            yield item
            del item

    stream_json(
        tmp_path / "a.json", iter([{"first": [1.5], "empty": iter([]), "many": items()}, iter([iter([1]), {}])])
    )
    inner = {"text": "é\n", "inner": {"list": [1, None]}}
    many = [{"number": number, **inner} for number in range(9)]
    expected = [{"first": [1.5], "empty": [], "many": many}, [[1], {}]]
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == expected
    with pytest.raises(ValueError, match="JSON"):
        stream_json(tmp_path / "a.json", iter([float("nan")]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cat\u202e4pm.exe", "cat4pm.exe"),
        ("\u2066a\u2069\u200e\u200f\u061cb", "ab"),
        ("soft\u00adhyphen\ufeff\u200b", "softhyphen"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian needs this one between two letters
        ("👩\u200d🚀 \n x", "👩\u200d🚀 x"),
        ("עברית café", "עברית café"),
        ("two\nlines\x00\x1b\u2028\ufffe  end ", "two lines end"),  # XML could not hold it
        ("caf\udce9", "caf\\udce9"),
    ],
)
def test_a_plain_name_has_no_characters_that_turn_or_hide_text(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["", "NaN", "[-Infinity]", "[" * 100_000, "9" * 5000])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is Python's own
        parse_json(text)
