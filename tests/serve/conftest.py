"""Videos on a server in this process, and Chromium."""

import itertools
import resource
from pathlib import Path

import pytest

from tests.helpers.served_library import PATIENCE, serving, two_shots
from tests.helpers.served_page import CHROMIUM, ServedPage, listening


@pytest.fixture(scope="session")
def stored_run():
    """A small trained run."""
    return Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"


@pytest.fixture
def served(tmp_path, make_video):
    """One video of 40 frames with a cut, ready."""
    with serving(tmp_path / "page", [two_shots(make_video, tmp_path / "video.mp4")]) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    # Playwright runs an event loop while it is open, which other modules may need for themselves.
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as started:
        program = CHROMIUM if CHROMIUM.exists() else Path(started.chromium.executable_path)  # of `make browser`
        if not program.exists():
            pytest.skip("Chromium is not installed")
        chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    """A page whose requests, errors and console are watched: nothing may leave this machine or fail."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE)
    problems, outside = [], []

    def watch(opened):
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text) if "Content Security" in said.text else None)
        opened.on("request", lambda asked: outside.append(asked.url))

    context.on("page", watch)
    yield context.new_page()
    context.close()
    assert problems == []
    assert [url for url in outside if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))] == []


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A server over a real socket that the tests of a module share; each adds videos of its own."""
    with serving(tmp_path_factory.mktemp("shelf") / "page") as server, listening(server) as address:
        server.address = address
        server.numbers = itertools.count()
        yield server


@pytest.fixture
def one(shelf, page, make_video, tmp_path):
    """The page and one video that no other test has changed: 40 frames with a cut."""
    path = two_shots(make_video, tmp_path / "video.mp4")
    with path.open("ab") as file:  # an empty box of mp4, so that each test has a video of another content
        file.write(b"\0\0\0\x10free" + next(shelf.numbers).to_bytes(8))
    video = shelf.library.add(path)
    shelf.wait()
    yield ServedPage(page, shelf, shelf.address, video.id)
    for known in shelf.library.videos():
        shelf.library.remove(known)


@pytest.fixture
def many_files():
    """The client, too, needs an open file for each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
