"""What a shell may do to a command: close its streams, let it ignore Ctrl-C, limit its files."""

import errno
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from colocam.utils.files import os_error_text

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
LOCALIZE = [sys.executable, "-m", "colocam", "localize", str(STORED / "model.onnx"), str(STORED / "video.mp4")]


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_lose_nothing(tmp_path, closed):
    command = ["sh", "-c", f'"$@" {closed}', "sh", *LOCALIZE, "-o", str(tmp_path / "out"), "--frames", ":4"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len((tmp_path / "out" / "video.csv").read_text(encoding="utf-8").splitlines()) == 5
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")) == [
        "video.csv",
        "video.mp4",
        "video.video.json",
    ]


WAITING = """
import signal
from colocam.utils import progress
progress.end_like_ctrl_c()
try:
    with progress.graceful_stop():
        print("ready", flush=True)
        while not progress.stop_requested():
            signal.sigtimedwait([], 0.1)
        print("asked to stop", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_signal_that_the_shell_ignores_stays_ignored_and_sigterm_stops(ignored):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline() == "ready\n"
        status = dict(
            line.split(":\t") for line in Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
        )
        assert bool(int(status["SigIgn"], 16) >> (signal.SIGINT - 1) & 1) == ignored
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "asked to stop\n"


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_limit_of_files_is_named_with_its_remedy(tmp_path):
    shutil.copy(STORED / "video.mp4", tmp_path / "other.mp4")
    for more in ([], [str(tmp_path / "other.mp4"), "--workers", "2"]):
        command = [*LOCALIZE, *more, "-o", str(tmp_path / "out"), "--masks", "--no-video"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files)
        assert ended.returncode == 1
        assert "Errno" not in ended.stderr
        (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        assert "cannot write " in line
        assert line.endswith("raise the limit (ulimit -f), or choose another output folder")


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "cannot write a.csv: the disk is full: free some space and run the same command again"),
        (errno.EROFS, "cannot write a.csv: the file system is read-only: choose another output folder"),
        (errno.EACCES, "a.csv: Permission denied"),
    ],
)
def test_an_error_of_the_system_names_file_and_remedy(number, told, colocam, monkeypatch):
    error = OSError(number, {errno.EACCES: "Permission denied"}.get(number, "full"), "a.csv")
    assert os_error_text(error) == told

    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr("colocam.labels.review_tables", fail)
    assert colocam("review", "a.csv").error == f"error: {told}"
