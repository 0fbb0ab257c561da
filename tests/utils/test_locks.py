"""What a killed process leaves is cleared by the next one; what a living process writes is not."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from colocam.errors import ColocamError
from colocam.utils.files import write_text
from colocam.utils.locks import DAY, clear_dead, locked, temporary_file, temporary_folder

CODE = """
import os, sys
from contextlib import ExitStack
from pathlib import Path
from colocam.utils.files import atomic_path
from colocam.utils.locks import locked
from colocam.utils.locks import temporary_folder
folder = Path(sys.argv[1])
with ExitStack() as stack:
    stack.enter_context(locked(folder))
    stack.enter_context(atomic_path(folder / "a.mp4")).write_bytes(b"half")
    (stack.enter_context(temporary_folder(folder)) / "frame").write_bytes(b"half")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """A process that holds the lock of a folder, and has an unfinished file and an unfinished folder in it."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".colocam"))


def test_what_a_killed_process_left_is_cleared(tmp_path, writer):
    assert len(hidden(tmp_path)) == 4
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(hidden(tmp_path)) == 4
    (tmp_path / ".colocam-mine.tmp").write_text("not ours")
    with locked(tmp_path):  # the lock ended with its process
        write_text(tmp_path / "b.txt", "x")
    assert hidden(tmp_path) == [".colocam-mine.tmp"]


def test_the_lock_of_a_killed_process_goes_when_its_parent_clears_up(tmp_path, writer):
    clear_dead(tmp_path, again=True)
    assert len(hidden(tmp_path)) == 4
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    other = tmp_path / f".colocam-{'0' * 16}.lock"
    other.write_text("process 1 on another-host")
    clear_dead(tmp_path, again=True)
    assert hidden(tmp_path) == [other.name]


def test_a_living_process_keeps_its_files_and_its_lock(tmp_path, writer):
    before = hidden(tmp_path)
    write_text(tmp_path / "b.txt", "x")
    with pytest.raises(ColocamError, match=rf"{tmp_path} is in use by process {writer.pid} on .*: wait until it ends"):
        locked(tmp_path).__enter__()
    assert hidden(tmp_path) == before
    writer.communicate("")
    assert writer.returncode == 0
    assert (tmp_path / "a.mp4").read_bytes() == b"half"
    assert hidden(tmp_path) == []


def test_a_folder_without_its_file_is_cleared(tmp_path, monkeypatch):
    """Its process was ended while it removed both."""
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with temporary_folder(tmp_path) as made:
        (made / "frame").write_bytes(b"half")
    monkeypatch.undo()
    (tmp_path / ".colocam-00000000-aaaaaaaaaaaaaaaa.tmp-folder").mkdir()
    clear_dead(tmp_path)
    assert made.exists()  # the folder was cleared before
    clear_dead(tmp_path, again=True)
    assert hidden(tmp_path) == [".colocam-00000000-aaaaaaaaaaaaaaaa.tmp-folder"]  # of another host, since today


def test_files_of_another_host_are_kept_for_a_day(tmp_path):
    """Its locks may be unknown here."""
    old, new = (tmp_path / f".colocam-00000000-{letter * 16}.tmp.mp4" for letter in "ab")
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (old.stat().st_mtime - DAY - 9,) * 2)
    with temporary_file(tmp_path / "a.mp4"):
        assert new.exists()
        assert not old.exists()


def test_links_with_such_names_are_left_alone(tmp_path):
    mine = tmp_path / "mine"
    (mine / "deep").mkdir(parents=True)
    with temporary_folder(tmp_path) as made:
        name = made.name.removesuffix("-folder")
    twin = f"{name[:-5]}{'1' if name[-5] == '0' else '0'}.tmp"
    other = tmp_path / "other"
    other.mkdir()
    (other / name).symlink_to(mine / "deep")
    (other / twin).write_text("x")
    (other / f"{twin}-folder").symlink_to(mine)
    write_text(other / "a.txt", "x")
    assert (mine / "deep").is_dir()
    assert (other / name).is_symlink()


def test_a_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch, capsys):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with locked(tmp_path), locked(tmp_path):
        assert capsys.readouterr().err.count(f"run only one command in {tmp_path} at a time") == 1
    assert not list(tmp_path.iterdir())
