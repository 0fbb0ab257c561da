"""One client that asks for much at once, or breaks off, keeps nobody out."""

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest

from colocam.serve import video_routes
from colocam.serve.stills import Stills
from tests.helpers.raw_requests import FEW_FILES, answer, closed, upload
from tests.helpers.served_library import serving
from tests.helpers.served_page import listening, running


@pytest.mark.usefixtures("many_files")
def test_uploads_that_are_broken_off_leave_no_traceback_and_keep_nobody_out(make_video, tmp_path):
    video, log = make_video(tmp_path / "video.mp4", 5), tmp_path / "log"
    with (
        log.open("wb") as errors,
        running(video, "-o", tmp_path / "page", before=FEW_FILES, stderr=errors) as child,
        ExitStack() as held,
    ):
        address = urlsplit(child.address)
        token = parse_qs(address.query)["token"][0]
        for number in range(1200):
            one = upload(address.port, token)
            if number % 3:
                held.enter_context(one)
            else:
                one.close()  # broken off half-way
            if number % 400 == 399:
                assert answer(address.port, token) == 200
        held.close()
        assert answer(address.port, token) == 200
        assert "Traceback" not in log.read_text()


def test_an_upload_that_stands_still_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(video_routes, "BODY_SECONDS", 0.2)
    with serving(tmp_path / "page") as server, listening(server) as address:
        port = int(address.rpartition(":")[2])
        assert closed(upload(port, server.workspace.token)).startswith(b"HTTP/1.1 408")
        assert list(server.workspace.uploads.iterdir()) == []


def test_many_stills_at_once_hold_up_no_other_request(make_video, tmp_path, monkeypatch):
    release, asked = threading.Event(), threading.Semaphore(0)

    def slow(*_):
        asked.release()
        release.wait(60)
        return b"still"

    monkeypatch.setattr(Stills, "get", slow)
    with (
        serving(tmp_path / "page", [make_video(tmp_path / "video.mp4", 4)]) as server,
        listening(server) as address,
        ThreadPoolExecutor(60) as pool,
    ):
        port, token = int(address.rpartition(":")[2]), server.workspace.token
        stills = [pool.submit(answer, port, token, f"/api/videos/{server.video}/stills/{at % 4}") for at in range(60)]
        assert asked.acquire(timeout=60)
        try:
            while sum(one.running() for one in stills) < 60:  # all have been sent
                pass
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            client.request("GET", "/api/videos", headers={"cookie": f"colocam-{port}={token}"})
            assert client.getresponse().status == 200  # while no still is there
            assert not any(one.done() for one in stills)
        finally:
            release.set()
        assert [one.result() for one in stills] == [200] * 60
