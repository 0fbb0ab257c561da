"""Everybody is answered while one client misbehaves: half-open requests, slow ones, too many of them."""

from contextlib import ExitStack, contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from colocam.serve import server as connections
from tests.helpers.raw_requests import FEW_FILES, answer, closed, opened, upload
from tests.helpers.served_library import serving
from tests.helpers.served_page import listening, running


@pytest.mark.usefixtures("many_files")
def test_a_thousand_half_open_requests_keep_nobody_out(make_video, tmp_path):
    video = make_video(tmp_path / "video.mp4", 5)
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        running(video, "-o", tmp_path / "page", before=FEW_FILES, stderr=errors) as child,
        ExitStack() as held,
    ):
        address = urlsplit(child.address)
        token = parse_qs(address.query)["token"][0]
        before = log.stat().st_size
        for number in range(1200):
            data = (b"GET / HT", b"", b"POST / HTTP/1.1\r\nHost: x\r\n")[number % 3]
            held.enter_context(opened(address.port, data))
            if number % 10 == 0:
                opened(address.port, b"no HTTP\r\n\r\n").close()
            if number % 300 == 299:
                assert answer(address.port, token) == 200
        assert log.stat().st_size - before < 5000


@contextmanager
def limited(monkeypatch, folder, **limits):
    """A server with other limits; gives its port and its token."""
    for name, value in limits.items():
        monkeypatch.setattr(connections, name, value)
    with serving(folder / "page") as server, listening(server) as address:
        yield int(address.rpartition(":")[2]), server.workspace.token


def test_headers_have_to_come_in_time_and_bodies_may_be_slow(monkeypatch, tmp_path):
    with limited(monkeypatch, tmp_path, HEADER_SECONDS=0.3) as (port, token):
        slow = upload(port, token)
        assert closed(opened(port, b"")) == b""
        assert closed(opened(port)) == b""
        whole = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        assert closed(opened(port, whole + b"GET / HT")).startswith(b"HTTP/1.1 401")
        refused = f"POST /api/exports HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n\r\n1".encode()
        dripping = opened(port, refused)
        assert dripping.recv(12) == b"HTTP/1.1 401"
        dripping.sendall(b"2")
        closed(dripping)
        slow.sendall(b"67890")
        assert closed(slow).startswith(b"HTTP/1.1 201")


def test_the_connection_that_waited_longest_gives_its_place(monkeypatch, tmp_path):
    with limited(monkeypatch, tmp_path, MOST=4, HEADER_SECONDS=600, GRACE_SECONDS=0) as (port, token):
        slow = upload(port, token)
        held = [opened(port) for _ in range(3)]
        assert answer(port, token) == 200
        assert closed(held[0]) == b""
        more = [upload(port, token) for _ in range(3)]
        assert closed(held[1]) == closed(held[2]) == b""
        assert closed(opened(port)) == b""  # all others are being answered
        for one in (slow, *more):
            one.sendall(b"67890")
            assert closed(one).startswith(b"HTTP/1.1 201")


def test_a_request_that_is_on_its_way_keeps_its_place(monkeypatch, tmp_path):
    with limited(monkeypatch, tmp_path, MOST=4, HEADER_SECONDS=600, GRACE_SECONDS=30) as (port, token):
        uploads = [upload(port, token) for _ in range(4)]  # all places are taken, and all are being answered
        late = opened(port, f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode())
        assert answer(port, token) == 200  # the server has looked at its places since
        late.sendall(b"Connection: close\r\n\r\n")
        assert closed(late).startswith(b"HTTP/1.1 401")
        for one in uploads:
            one.close()


def test_beyond_the_last_place_a_connection_has_no_grace(monkeypatch, tmp_path):
    with limited(monkeypatch, tmp_path, MOST=2, FULL=4, HEADER_SECONDS=600, GRACE_SECONDS=600) as (port, token):
        held = [opened(port) for _ in range(4)]
        assert answer(port, token) == 200
        assert closed(held[0]) == b""
