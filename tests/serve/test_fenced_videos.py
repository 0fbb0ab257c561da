"""Videos are decoded in processes of their own; one that hangs holds up neither the server nor other videos."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from colocam.errors import ColocamError
from colocam.serve import stills as stills_module
from colocam.serve.stills import Stills
from colocam.video.reader import VideoReader
from tests.helpers.served_library import serving


def test_no_video_is_opened_in_the_process_of_the_server(make_video, tmp_path, monkeypatch):
    video = make_video(tmp_path / "video.mp4", 6)

    def refuse(_reader):
        raise AssertionError("a video was opened in the process of the server")

    monkeypatch.setattr(VideoReader, "__enter__", refuse)
    with serving(tmp_path / "page", [video]) as server:
        known = server.library.video(server.video)
        assert known.state == "ready", known.problem
        assert server.client.get(f"/api/videos/{known.id}/stills/5").status_code == 200


def test_a_video_that_hangs_holds_up_no_other(make_video, tmp_path, monkeypatch):
    good, hung = make_video(tmp_path / "good.mp4", 3), tmp_path / "hung.mp4"
    begun, release = threading.Event(), threading.Event()
    whole = stills_module.open_fenced

    def open_fenced(path, **limits):
        if path == hung:
            begun.set()
            release.wait(60)
            raise ColocamError("cannot read hung.mp4: its decoder gave no frame")
        return whole(path, **limits)

    monkeypatch.setattr(stills_module, "open_fenced", open_fenced)
    monkeypatch.setattr(stills_module, "PATIENCE", 0.05)
    stills = Stills()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stills.get, "hung", hung, 0)
        assert begun.wait(60)
        with pytest.raises(ColocamError, match="its decoder is busy or hangs"):
            stills.get("hung", hung, 1)
        for video in ("a", "b", "c"):  # more than are kept open, so that the video that hangs is dropped
            assert stills.get(video, good, 2) is not None
        stills.close()
        release.set()
        with pytest.raises(ColocamError, match=r"cannot read hung\.mp4: its decoder gave no frame"):
            waiting.result(60)
