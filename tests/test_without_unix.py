"""What only Unix has is not needed: modules and functions that Windows lacks are hidden from a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.hidden_modules import hiding, packages_of_extras

STORED = Path(__file__).parent / "stored" / "version-0.1.0"
UNIX = ["fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline"]
REMOVE = """
import os, select, signal
for module, names in (
    (os, ["fork", "register_at_fork", "memfd_create", "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "killpg"]),
    (select, ["poll", "epoll"]),
    (signal, ["SIGIO", "SIGHUP", "SIGKILL", "SIGALRM", "pthread_sigmask", "pthread_kill"]),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""


@pytest.fixture
def colocam_elsewhere(tmp_path):
    """``colocam_elsewhere("localize", …)`` runs a command without what only Unix has; what it printed."""
    environment = hiding(tmp_path / "site", UNIX, REMOVE)

    def run(*words):
        command = [sys.executable, "-m", "colocam", *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout + ended.stderr

    return run


def test_every_module_of_the_base_installation_can_be_imported(tmp_path):
    code = """
import importlib, pkgutil, colocam
for found in pkgutil.walk_packages(colocam.__path__, "colocam."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if (error.name or "") in UNIX:
            print(found.name, error.name)
""".replace("UNIX", repr({*UNIX}))
    # asyncio, which extras import, chooses by the name of the system, not by what is there.
    environment = hiding(tmp_path, {*UNIX, "asyncio", *packages_of_extras()}, REMOVE)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr


def test_a_video_is_localized_and_its_tables_are_read(colocam_elsewhere, tmp_path):
    assert "localize" in colocam_elsewhere("--help")
    video, out = STORED / "video.mp4", tmp_path / "out"
    said = colocam_elsewhere("localize", STORED / "model.onnx", video, "-o", out)
    assert said.count("reading a video has no memory or time limit") == 1
    assert said.count("has no locks") == 1
    assert sorted(path.name for path in out.iterdir()) == [
        "video.csv",
        "video.mp4",
        "video.video.json",
    ]
    expected = (STORED / "offline.csv").read_text(encoding="utf-8").splitlines()
    assert len((out / "video.csv").read_text(encoding="utf-8").splitlines()) == len(expected)
    several = colocam_elsewhere("localize", STORED / "model.onnx", STORED / "videos", "-o", "many", "--workers", "2")
    assert "a single one does it all" in several
    assert len(list((tmp_path / "many").rglob("*.csv"))) == 3
    colocam_elsewhere("export", out, "--to", "coco", "-o", "coco", "--images")
    colocam_elsewhere("import", "coco", "--from", "coco", "--tables", out, "-o", "corrections.csv")
    colocam_elsewhere("review", out, "-o", "review.csv")
    assert (tmp_path / "review.csv").is_file()


def test_boxes_are_those_of_unix(colocam_elsewhere, tmp_path):
    here = [sys.executable, "-m", "colocam", "localize", STORED / "model.onnx", STORED / "video.mp4", "--no-video"]
    subprocess.run([*here, "-o", tmp_path / "here"], check=True, capture_output=True)
    colocam_elsewhere(*here[3:], "-o", "elsewhere")
    assert (tmp_path / "elsewhere" / "video.csv").read_bytes() == (tmp_path / "here" / "video.csv").read_bytes()
