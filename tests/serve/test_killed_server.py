"""The server is killed in the middle of corrections and started again; the page in Chromium stays open."""

import os
import signal
import socket

from colocam.serve.store import EventStore
from tests.helpers.served_page import running


def own_port():
    """A free port that nobody is given by chance: below those of the system, another one in every process of tests."""
    for port in range(10_000 + os.getpid() % 20_000, 32_000):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def test_nothing_that_was_said_to_be_saved_is_lost_and_the_rest_is_sent(page, make_video, tmp_path):
    make_video(tmp_path / "videos" / "kite" / "video.mp4", 12)
    arguments = (tmp_path / "videos", "-o", tmp_path / "page")
    said, sent = [], []
    page.on("request", lambda one: sent.append(one.post_data_json["client"]) if one.method == "POST" else None)
    page.on(
        "response",
        lambda one: said.append(one.request.post_data_json["client"]) if one.request.method == "POST" else None,
    )
    with running(*arguments, "--port", own_port()) as server:
        page.goto(server.address)
        page.locator(".video a").click()
        page.wait_for_selector(".number[data-frame]")
        for number in range(9):
            page.keyboard.press("n")
            while number == 5 and not said:  # something was saved before the server is killed
                page.wait_for_timeout(20)
            if number == 5:
                os.kill(server.pid, signal.SIGKILL)
                server.wait()
            page.keyboard.press(".")
        page.locator("#saved.bad").wait_for()
    before = list(said)
    assert before
    with running(*arguments) as server:  # at the port of the last start, where the page waits for it
        page.locator("#saved.good").wait_for()
        assert page.evaluate("window.colocam.saving.waiting.length") == 0
        assert page.url.startswith(server.address.partition("?")[0])
    store = EventStore(tmp_path / "page" / "corrections.sqlite")
    assert [known.name for known in store.videos()] == ["kite/video"]  # as localize names its results
    stored = [event.client for known in store.videos() for event in store.events(known.id)]
    store.close()
    assert len(stored) == len(set(stored)) == 9
    assert set(before) <= set(stored)
    assert set(stored) == set(sent)
