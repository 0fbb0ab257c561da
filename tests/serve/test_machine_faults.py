"""Faults of a machine are not faults of a video: the page says so, and Retry or the next start tries again."""

import errno
import os
import signal

import pytest

from colocam.errors import ColocamError, machine_fault
from colocam.serve import library as module
from colocam.serve.guard import RefusalError, blame
from colocam.video.input import DecoderEndedError, UnreadableError
from tests.helpers.served_library import serving


class OutOfMemoryError(RuntimeError):
    """As PyTorch names its own."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "memory ran out"),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), "memory ran out"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open"),
        (RefusalError(507, "corrections.sqlite: the disk is full: free some space"), "the disk is full"),
        (DecoderEndedError("cannot read v now: its decoder was ended from outside"), "ended from outside"),
    ],
)
def test_what_a_machine_lacks_is_no_fault_of_a_video(error, words):
    sentence, whose = blame(error, "bird")
    assert whose == "machine"
    assert words in sentence


def test_a_cause_counts_and_other_errors_are_those_of_the_video():
    error = ColocamError("cannot write bird.mp4")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert machine_fault(error) == "the disk is full: free some space"
    assert blame(UnreadableError("cannot read bird: no frame can be decoded"), "bird")[1] == "video"
    assert blame(ValueError("x"), "bird") == ("cannot read bird: ValueError: x", "video")


def test_a_decoder_that_was_killed_is_not_blamed_on_its_video_and_retry_reads_it(make_video, tmp_path, monkeypatch):
    video, whole = make_video(tmp_path / "video.mp4", 40), module.stored_index

    def killed(path, *more):
        """The system kills the decoder while the video is read."""
        from colocam.video import fence  # noqa: PLC0415 - what a video is read with

        receive = fence.DecoderProcess.receive

        def kill(decoder, seconds):
            os.kill(decoder._process._process.pid, signal.SIGKILL)
            return receive(decoder, seconds)

        with monkeypatch.context() as patch:
            patch.setattr(fence.DecoderProcess, "receive", kill)
            return whole(path, *more)

    monkeypatch.setattr(module, "stored_index", killed)
    with serving(tmp_path / "page", [video]) as server:
        (card,) = server.client.get("/api/videos").json()["videos"]
        assert (card["state"], card["fault"]) == ("failed", "machine")
        assert "ended from outside (signal SIGKILL)" in card["problem"]
        assert "H.264" not in card["problem"]
        monkeypatch.setattr(module, "stored_index", whole)
        assert server.client.post(f"/api/videos/{server.video}/retry").status_code == 202
        server.wait()
        (card,) = server.client.get("/api/videos").json()["videos"]
        assert (card["state"], card["fault"], card["problem"]) == ("ready", "", "")


def test_the_next_start_tries_again_by_itself(make_video, tmp_path, monkeypatch):
    video, whole = make_video(tmp_path / "video.mp4", 4), module.stored_index

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "stored_index", full)
    with serving(tmp_path / "page", [video]) as server:
        (card,) = server.client.get("/api/videos").json()["videos"]
        assert (card["state"], card["fault"]) == ("failed", "machine")
        assert card["problem"] == "the disk is full: free some space, then retry: video is not to blame"
    monkeypatch.setattr(module, "stored_index", whole)
    with serving(tmp_path / "page") as server:
        assert server.client.get("/api/videos").json()["videos"][0]["state"] == "ready"
