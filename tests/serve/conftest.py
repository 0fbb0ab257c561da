"""A server in this process, and Chromium. The model needs no training: its box moves by a pixel a frame."""

import itertools
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

from colocam.serve.library import Library
from colocam.serve.server import make_app
from colocam.serve.store import EventStore, open_workspace
from colocam.types import Box, Localization
from served_page import CHROMIUM, PATIENCE, ServedPage, eventually, listening

HOST = "127.0.0.1:8620"


class MovingBox:
    """Stands in for a Localizer; its first box begins ``shift`` pixels from the left, a threshold moves it down."""

    tags = ("cat", "dog")
    card = SimpleNamespace(size=32, presence="known")
    segmenter = None

    def __init__(self, shift=5.0, *, tag=None, presence=None, threshold=None, instances=False):
        self.shift, self.instances = shift, instances
        self.tag, self.presence, self.down = tag or "cat", presence or 0.0, 10 * (threshold or 0.0)

    def with_options(self, **options):
        return type(self)(self.shift, **options)

    def without_segmenter(self):
        return self

    def stream(self, frames, *, images, **_):  # noqa: ARG002 - as of a Localizer
        for frame in frames:
            x = self.shift + frame.index
            mask = np.zeros(frame.image.shape[:2], bool)
            mask[6:30, int(x) : int(x) + 20] = True
            heat = np.zeros((16, 16), np.float32)
            heat[4:8, 4:8] = 1
            faint = 0.1 if frame.index % 7 == 3 else 0.9
            found = Localization(
                frame=frame.index,
                pts=frame.pts,
                tag=self.tag,
                probability=0.9,
                box=Box(x, 6.0 + self.down, x + 20, 30.0) if self.presence <= 0.8 else None,
                score=faint,
                raw_map=heat,
                track=0,
                presence=0.8,
                margin=0.5,
                mask=mask,
            )
            if self.instances and 4 <= frame.index < 12:  # another one, which stays where it is, is found first
                yield frame, replace(found, box=Box(2.0, 32.0, 22.0, 46.0), score=0.4, track=1, mask=None, margin=None)
            yield frame, found


class LeavesAndReturns(MovingBox):
    """The object is away in frames 9 to 25, and the model says so."""

    def stream(self, frames, *, images, **_):
        for frame, found in super().stream(frames, images=images):
            away = replace(found, box=None, score=0.0, presence=0.02, track=None, mask=None)
            yield frame, away if 9 <= frame.index <= 25 else found


@contextmanager
def serving(
    folder,
    films=(),
    *,
    model=MovingBox,
    load=None,
    beside=(),
    quick=str,
    run=None,
    segmenter="",
):
    """A client of a server on ``folder``; all films, paths or paths with names, are ready."""
    with open_workspace(folder) as workspace:
        store = EventStore(workspace.database)
        if run is None:
            run = folder / "model.onnx"
            run.write_bytes(b"a model")
        library = Library(
            workspace, store, [run, *beside], load or (lambda _path: model()), quick=quick, segmenter=segmenter
        )
        for film in films:
            library.add(*film if isinstance(film, tuple) else (film,))
        library.start()
        app = make_app(library, frozenset({HOST}))
        client = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)
        client.headers["x-colocam-token"] = workspace.token
        client.cookies.set("colocam-8620", workspace.token)
        wait_until_done(library)
        try:
            yield SimpleNamespace(client=client, library=library, store=store, workspace=workspace, app=app)
        finally:
            library.stop()
            store.close()


def wait_until_done(library):
    eventually(lambda: all(film.state in {"ready", "failed"} for film in library.films()))


@pytest.fixture(name="serving", scope="session")
def serving_fixture():
    return serving


@pytest.fixture(scope="session")
def stored_run():
    """A small trained run."""
    return Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run"


@pytest.fixture(scope="session")
def moving_box():
    return MovingBox


@pytest.fixture(scope="session")
def leaves_and_returns():
    return LeavesAndReturns


@pytest.fixture(name="wait_until_done", scope="session")
def wait_until_done_fixture():
    return wait_until_done


def two_shots(make_video, path):
    """A film of 40 frames with a cut."""
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 90, (48, 64, 3)).astype(np.uint8) + shift for shift in (0, 150))
    return make_video(path, [image.astype(np.uint8) for image in [first] * 25 + [second] * 15])


@pytest.fixture
def served(tmp_path, make_video):
    """One film of 40 frames with a cut, ready."""
    film = two_shots(make_video, tmp_path / "film.mp4")
    with serving(tmp_path / "page", [film]) as server:
        server.film = server.library.films()[0].id
        server.path = film
        yield server


@pytest.fixture(scope="module")
def browser():
    # Playwright runs an event loop while it is open, which other modules may need for themselves.
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
    """A server over a real socket that the tests of a module share; each adds films of its own."""
    with serving(tmp_path_factory.mktemp("shelf") / "page") as server, listening(server) as address:
        server.address = address
        server.numbers = itertools.count()
        yield server


@pytest.fixture
def one(shelf, page, make_video, tmp_path):
    """The page and one film that no other test has changed: 40 frames with a cut."""
    path = two_shots(make_video, tmp_path / "film.mp4")
    with path.open("ab") as file:  # an empty box of mp4, so that each test has a film of another content
        file.write(b"\0\0\0\x10free" + next(shelf.numbers).to_bytes(8))
    film = shelf.library.add(path)
    wait_until_done(shelf.library)
    opened = ServedPage(page, shelf.address, shelf.workspace.token)
    opened.film, opened.store, opened.library = film.id, shelf.store, shelf.library
    yield opened
    for known in shelf.library.films():
        shelf.library.remove(known)
