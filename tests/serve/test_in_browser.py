"""The page in Chromium: the number in the frame is the number on the page; corrections are saved and undone."""

import shutil
import socket
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import uvicorn

from colocam.config.card import parse_card
from colocam.serve import lessons
from colocam.serve.actions import Action, Change
from colocam.serve.app import make_app
from colocam.serve.marks import ACCEPTED, FOLLOWS, FOLLOWS_NONE, NONE, marks_of
from colocam.serve.server import guard_settings
from colocam.video.fence import decode

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
BITS, BLOCK = 8, 16
FRAMES = 30
PATIENCE = 60

READ_NUMBER = """
(source) => {
  const canvas = document.createElement("canvas"), { film } = window.colocam;
  canvas.width = film.width; canvas.height = film.height;
  const context = canvas.getContext("2d");
  context.drawImage(source, 0, 0, film.width, film.height);
  let number = 0;
  for (let bit = 0; bit < 8; bit++) {
    const pixel = context.getImageData(bit * 16 + 8, film.height - 8, 1, 1).data;
    number += (pixel[0] > 128 ? 1 : 0) << bit;
  }
  return number;
}
"""


def numbered_frame(number, width=160, height=96):
    """Grey, with the number as eight black or white blocks along the lower edge."""
    image = np.full((height, width, 3), 90, np.uint8)
    for bit in range(BITS):
        image[-BLOCK:, bit * BLOCK : (bit + 1) * BLOCK] = 255 * (number >> bit & 1)
    return image


def number_in(image):
    """The number of :func:`numbered_frame`."""
    return sum(int(image[-BLOCK // 2, bit * BLOCK + BLOCK // 2, 0] > 128) << bit for bit in range(BITS))


def coded(path, frames, codec="libx264", *, first=0, shape=None, options=None):
    """A film whose first pts and shape of pixels are given; frames before 0 are cut away by an edit list."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream(codec, rate=25, options=options or {})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        if shape is not None:
            stream.codec_context.sample_aspect_ratio = shape
        for number, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(image, "rgb24")
            frame.pts, frame.time_base = number + first, Fraction(1, 25)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


@contextmanager
def listening(server, port=0):
    """Serve over a real socket; gives the address."""
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        own.listen(64)
        at = own.getsockname()[1]
        app = make_app(server.library, guard_settings("127.0.0.1", at, server.workspace.token))
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{at}"
        finally:
            running.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    """A page whose requests, errors and console are watched: nothing may leave this machine or fail."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * PATIENCE)
    opened = context.new_page()
    problems = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if "Content Security" in message.text else None)
    outside = []
    opened.on(
        "request", lambda one: outside.append(one.url) if "//127.0.0.1:" not in one.url and ":" in one.url[:6] else None
    )
    yield opened
    context.close()
    assert problems == []
    assert [url for url in outside if not url.startswith(("blob:", "data:"))] == []


@pytest.fixture
def films(tmp_path, make_video):
    """Films of many kinds whose frames carry their number."""
    frames = [numbered_frame(number) for number in range(FRAMES)]
    rng = np.random.default_rng(1)
    uneven = np.cumsum(rng.choice([0.02, 0.04, 0.1, 0.14], FRAMES))
    late = 1.5 + np.arange(FRAMES) / 25
    sideways = [np.ascontiguousarray(np.rot90(image, -1)) for image in frames]
    made = [
        make_video(tmp_path / "constant.mp4", frames, options={"bf": "3"}),
        make_video(tmp_path / "variable.mp4", frames, times=uneven - uneven[0], options={"bf": "3"}),
        make_video(tmp_path / "late.mp4", frames, times=late),
        make_video(tmp_path / "variable.mkv", frames, times=uneven),
        make_video(tmp_path / "constant.avi", frames, codec="mpeg4"),
        make_video(tmp_path / "turned.mp4", sideways, rotation=90),
        make_video(tmp_path / "slow.mov", frames, fps=5, codec="libx264"),
    ]
    made += [
        coded(tmp_path / "hevc.mp4", frames, "libx265", options={"x265-params": "log-level=none"}),
        coded(tmp_path / "wide pixels.mp4", frames, shape=Fraction(2, 1)),
        coded(tmp_path / "edit list.mp4", frames, options={"bf": "3"}, first=-6),
    ]
    assert b"elst" in made[-1].read_bytes()
    (tmp_path / "images").mkdir()
    for number, image in enumerate(frames):
        cv2.imwrite(str(tmp_path / "images" / f"{number}.png"), image)
    return [*made, tmp_path / "images"]


def until(page, condition):
    """Wait for a condition in JavaScript; Playwright's own waiting needs eval, which the page forbids."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(f"() => Boolean({condition})"):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def open_film(page, address, film):
    page.goto(f"{address}/#film={film}")
    until(page, f"window.colocam?.film.id === '{film}' && window.colocam.player.position >= 0")


def box(page):
    text = page.locator(".frame-facts").get_attribute("data-box")
    return [float(value) for value in text.split(",")] if text else None


def wait_saved(page):
    until(page, "document.getElementById('saved').textContent.startsWith('saved')")
    until(page, "!window.colocam.saving.waiting.length")


def test_the_number_in_the_frame_is_the_number_on_the_page(page, films, serving, tmp_path):
    with serving(tmp_path / "page", films) as server, listening(server) as address:
        assert [film.problem for film in server.library.films()] == [""] * len(films)
        for film in server.library.films():
            # The number drawn into each frame, as FFmpeg decodes the film.
            drawn = [number_in(frame.image) for frame in decode(film.path)]
            assert drawn == list(range(6 if "edit" in film.name else 0, FRAMES)), film.name
            last = len(drawn) - 1
            assert len(film.index.proxy) == len(drawn), film.name
            open_film(page, address, film.id)
            until(page, "window.colocam.parts.video.readyState >= 2")
            page.evaluate(f"() => {{ window.numberIn = {READ_NUMBER}; }}")
            # Paused: the exact frame, forward, backward and far away.
            for number in (0, 1, 17, 16, last, 5):
                page.evaluate("number => window.colocam.player.go(number)", number)
                until(page, f"document.querySelector('.number').dataset.frame == {number}")
                until(page, "!document.querySelector('.still').hidden")
                assert page.evaluate("numberIn(document.querySelector('.still'))") == drawn[number], film.name
            # The proxy alone, after a seek.
            page.evaluate("() => { window.colocam.player.load = () => new Promise(() => {}); }")
            for number in (12, 23, 0):
                page.evaluate(
                    "number => { const { player } = window.colocam; player.bitmaps.clear(); player.go(number); }",
                    number,
                )
                until(page, f"document.querySelector('.number').dataset.frame == {number}")
                assert page.evaluate("numberIn(document.querySelector('video'))") == drawn[number], film.name
            # Playing: each frame that the browser presents.
            pairs = page.evaluate(PLAY)
            assert len(pairs) >= 2, film.name
            assert all(drawn[told] == read for told, read in pairs), (film.name, pairs)


PLAY = """
() => new Promise((done) => {
  const view = window.colocam, pairs = [], shown = view.player.onShown;
  view.player.onShown = (at) => {
    shown(at);
    if (view.player.playing) {
      pairs.push([Number(document.querySelector(".number").dataset.frame), numberIn(view.parts.still)]);
    }
  };
  view.player.onState = () => { if (!view.player.playing) done(pairs); };
  view.player.go(0);
  view.setRate(1);
  view.player.play();
  setTimeout(() => done(pairs), 1200);
})
"""


@pytest.fixture
def one(served):
    with listening(served) as address:
        served.address = address
        yield served


def test_correct_undo_redo_and_reload(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box === '5,6,25,30'")
    for key in ("ArrowRight", "Shift+ArrowRight", "ArrowDown", "Alt+ArrowRight"):
        page.keyboard.press(key)
    assert box(page) == [16, 7, 37, 31]
    wait_saved(page)
    page.keyboard.press("n")
    assert box(page) is None
    page.keyboard.press("z")
    assert box(page) == [16, 7, 37, 31]
    page.keyboard.press("z")
    assert box(page) == [5, 6, 25, 30]
    page.keyboard.press("z")  # not past the prediction
    assert box(page) == [5, 6, 25, 30]
    page.keyboard.press("y")
    wait_saved(page)
    page.reload()
    until(page, "document.querySelector('.frame-facts')?.dataset.box === '16,7,37,31'")
    page.keyboard.press("y")
    assert box(page) is None
    wait_saved(page)
    assert one.store.history(one.film)[0] == 6


def test_boxes_between_marked_frames_follow_as_the_server_says(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box")
    for number, key in ((4, "Shift+ArrowDown"), (14, "Shift+ArrowUp"), (16, "n"), (20, "n"), (30, "A"), (33, "b")):
        page.evaluate("number => window.colocam.player.go(number)", number)
        until(page, f"document.querySelector('.number').dataset.frame == {number}")
        page.keyboard.press(key)
        page.evaluate("window.colocam.flush()")
    wait_saved(page)
    film = one.library.film(one.film)
    _, history = one.store.history(one.film)
    marks = marks_of(history.actions, film.index.frames, film.index.cuts)
    seen = page.evaluate("({ state: [...window.colocam.marks.state], box: window.colocam.marks.box })")
    assert seen["state"] == marks.state.tolist()
    assert {FOLLOWS, FOLLOWS_NONE, ACCEPTED} <= set(seen["state"])
    found = np.array([corners or [np.nan] * 4 for corners in seen["box"]], float)
    np.testing.assert_allclose(found, marks.box, atol=1e-9)


def test_drag_draws_moves_and_resizes(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box")
    area = page.locator(".overlay").bounding_box()

    def at(x, y):
        return area["x"] + x * area["width"] / 64, area["y"] + y * area["height"] / 48

    def drag(start, end):
        page.mouse.move(*at(*start))
        page.mouse.down()
        page.mouse.move(*at(*end), steps=3)
        page.mouse.up()

    drag((15, 18), (25, 20))
    assert box(page) == pytest.approx([15, 8, 35, 32], abs=0.2)
    drag((35, 32), (40, 40))
    assert box(page) == pytest.approx([15, 8, 40, 40], abs=0.2)
    drag((45, 10), (60, 30))
    assert box(page) == pytest.approx([45, 10, 60, 30], abs=0.2)
    wait_saved(page)


def test_changes_wait_while_the_server_is_away(page, served):
    with listening(served) as address:
        open_film(page, address, served.film)
        until(page, "document.querySelector('.frame-facts').dataset.box")
    page.keyboard.press("a")
    until(page, "document.getElementById('saved').textContent.includes('the server is away')")
    page.keyboard.press("n")
    assert served.store.history(served.film)[0] == 0
    with listening(served, int(address.rpartition(":")[2])):
        wait_saved(page)
    assert [event.change.actions[0].kind for event in served.store.events(served.film)] == ["accepted", "none"]


def test_two_pages_that_change_one_frame_are_asked(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box")
    theirs = Change(kind="edit", actions=[Action(kind="box", start=0, stop=1, box=[1, 2, 11, 12])])
    one.store.append(one.film, "another-page", 0, theirs)
    page.keyboard.press("n")
    page.wait_for_selector("dialog[open]")
    asked = page.locator("dialog[open]").inner_text()
    assert "box in frame 0 (1, 2, 11, 12)" in asked
    assert "no object in frame 0" in asked
    page.get_by_role("button", name="Keep theirs").click()
    until(page, "document.querySelector('.frame-facts').dataset.box === '1,2,11,12'")
    # Another frame does not contradict.
    one.store.append(
        one.film, "another-page-2", 1, Change(kind="edit", actions=[Action(kind="none", start=9, stop=10)])
    )
    page.keyboard.press("n")
    wait_saved(page)
    assert [event.change.actions[0].kind for event in one.store.events(one.film)] == ["box", "none", "none"]


def test_add_a_film_export_it_and_take_labels_back(page, one, make_video, tmp_path):
    page.goto(one.address)
    page.wait_for_selector(".film.ready")
    name = "<img src=x onerror=alert(1)>.mp4"
    film = make_video(tmp_path / "more" / name, 12)
    page.set_input_files("#add-film", film)
    until(page, "document.querySelectorAll('.film.ready').length === 2")
    assert page.locator(".film .name").filter(has_text="<img").count() == 1
    page.locator(".film", has_text="<img").locator("a").click()
    page.wait_for_selector(".number[data-frame]")
    until(page, "document.querySelector('.frame-facts').dataset.box")
    page.keyboard.press("Shift+N")
    page.wait_for_selector("dialog[open]")
    assert "All 12 boxes" in page.locator("dialog[open]").inner_text()
    page.keyboard.press("Enter")  # the whole track is not deleted by a key that was pressed too long
    assert box(page) is not None
    page.keyboard.press("Shift+N")
    page.get_by_role("button", name="Delete the track").click()
    wait_saved(page)
    page.get_by_role("button", name="Export…").click()
    page.select_option("#format", "corrections")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    with zipfile.ZipFile(download.value.path()) as zipped:
        assert zipped.read("corrections.csv").decode().count(",none,") == 12


def test_every_key_in_the_list_works_and_every_control_has_a_name(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box")
    page.keyboard.press(".")
    until(page, "document.querySelector('.number').dataset.frame === '1'")
    page.keyboard.press("x")
    until(page, "document.querySelector('.number').dataset.frame === '25'")
    page.keyboard.press("a")
    page.keyboard.press(",")
    until(page, "document.querySelector('.number').dataset.frame === '24'")
    page.keyboard.press("f")
    until(page, "document.querySelector('.number').dataset.frame === '25'")
    page.keyboard.press("Shift+F")
    page.keyboard.press("j")
    until(page, "document.querySelector('.number').dataset.frame % 7 === 3")
    shown = page.locator(".queue li").count()
    page.keyboard.press("a")  # what is marked leaves the queue
    until(page, f"document.querySelectorAll('.queue li').length === {shown - 1}")
    page.locator("#skip").uncheck()
    until(page, f"document.querySelectorAll('.queue li').length === {shown}")
    page.keyboard.press("c")
    page.keyboard.press("2")
    until(page, "document.querySelector('.frame-facts').innerText.includes('dog')")
    page.keyboard.press("?")
    assert "Accept the stretch" in page.locator("dialog[open]").inner_text()
    page.keyboard.press("Escape")
    names = page.evaluate(
        "[...document.querySelectorAll('button, select, input, [role=slider]')].filter((one) => "
        "!(one.innerText?.trim() || one.ariaLabel || one.labels?.length || one.title)).map((one) => one.outerHTML)"
    )
    assert names == []
    assert_all_reached_by_tab(page)
    page.keyboard.press("l")
    page.wait_for_selector(".film.ready")
    assert_all_reached_by_tab(page)


def assert_all_reached_by_tab(page):
    """Every control is reached by the Tab key, and the one that has the focus is outlined."""
    count = page.evaluate(
        "() => { document.activeElement.blur(); const all = [...document.querySelectorAll("
        "'a[href], button, input, select, summary, [tabindex=\"0\"]')].filter((one) => one.tabIndex >= 0 && "
        "!one.disabled && one.getClientRects().length); all.forEach((one, at) => { one.dataset.tab = at; }); "
        "return all.length; }"
    )
    reached = set()
    for _ in range(count + 2):
        page.keyboard.press("Tab")
        at, outline = page.evaluate(
            "() => [document.activeElement.dataset.tab, getComputedStyle(document.activeElement).outlineStyle]"
        )
        if at is not None:
            assert outline != "none", at
            reached.add(at)
    assert len(reached) == count


def test_the_object_leaves_and_enters(page, one):
    open_film(page, one.address, one.film)
    until(page, "document.querySelector('.frame-facts').dataset.box")
    for number, key in ((10, "]"), (18, "n"), (28, "[")):
        page.evaluate("number => window.colocam.player.go(number)", number)
        until(page, f"document.querySelector('.number').dataset.frame == {number}")
        page.keyboard.press(key)
    wait_saved(page)
    state = page.evaluate("[...window.colocam.marks.state]")
    assert state == [0] * 10 + [NONE] * 15 + [NONE] * 3 + [0] * 12  # a cut before frame 25 ends the stretch


@pytest.fixture
def taught(serving, moving_box, make_video, stored_run, tmp_path, monkeypatch):
    """A server whose lessons write a model with boxes 12 pixels further right."""
    made = "{'stages': [{'name': 'before', 'iou': 0.5, 'kept': True}, {'name': 'decoder', 'iou': 0.75, 'kept': True}]"
    writes = (
        "import json, pathlib, sys; out = pathlib.Path(sys.argv[4]); out.mkdir(); "
        f"(out / 'learning.json').write_text(json.dumps({made}, 'held_out': {{'frames': 7}}}})); "
        "(out / 'model.json').write_text('a new model')"
    )
    monkeypatch.setattr(lessons, "COMMAND", (sys.executable, "-c", writes))
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.json", "model.safetensors"):
        shutil.copyfile(stored_run / name, run / name)
    card = parse_card((run / "model.json").read_text(), "model.json")
    film = make_video(tmp_path / "film.mp4", [np.full((48, 80, 3), 90, np.uint8)] * 30)

    def load(path):
        return moving_box({"quick": 11.0, "run": 17.0}[path.name] if "lessons" in path.parts else 5.0)

    other = tmp_path / "other.onnx"
    other.write_bytes(b"another model")
    quick = lambda _run: lambda said: card.model_copy(update={"threshold": 0.01 * len(said)})  # noqa: E731
    with (
        serving(tmp_path / "page", [film], load=load, run=run, quick=quick, beside=[other]) as server,
        listening(server) as address,
    ):
        server.address, server.film = address, server.library.films()[0].id
        yield server


def test_layers_and_another_model(page, taught):
    open_film(page, taught.address, taught.film)
    until(page, "document.querySelector('.frame-facts').dataset.box === '5,6,25,30'")
    page.keyboard.press("o")
    until(page, "window.colocam.seen().outline?.[0].length >= 8")
    until(page, "window.colocam.seen().heat")
    page.keyboard.press("h")
    assert page.evaluate("window.colocam.seen().heat") is None
    page.keyboard.press("d")
    until(page, "window.colocam.seen().other?.join() === '5,6,25,30'")
    assert page.evaluate("window.colocam.seen().otherLabel") == "other.onnx: cat 90 %"
    page.keyboard.press("d")
    until(page, "window.colocam.seen().kind === 'beside'")
    until(page, "window.colocam.seen().kind === 'predicted'")
    page.keyboard.press("d")
    assert page.evaluate("window.colocam.comparison.mode") == "off"


def test_teach_see_what_changed_switch_and_switch_back(page, taught):
    open_film(page, taught.address, taught.film)
    until(page, "document.querySelector('.frame-facts').dataset.box === '5,6,25,30'")
    page.keyboard.press("a")
    wait_saved(page)
    page.get_by_role("button", name="Learn…").click()
    page.get_by_role("button", name="Learn from all corrections").click()
    page.wait_for_selector(".moved canvas")
    told = page.locator("dialog[open]").inner_text()
    assert "Agreement with 7 held-out corrections" in told
    assert "0.500" in told
    assert "0.750" in told
    assert page.locator(".moved canvas").first.get_attribute("aria-label").startswith("before: box")
    page.get_by_role("button", name="Use the new model").click()
    page.get_by_role("button", name="Back to the first model").wait_for()
    page.keyboard.press("Escape")
    until(page, "window.colocam.film.results.box[1][0] === 18")
    assert box(page) == [5, 6, 25, 30]  # what was accepted stays
    page.keyboard.press(".")
    until(page, "document.querySelector('.frame-facts').dataset.box === '18,6,38,30'")
    # Every ten corrections, thresholds follow at once.
    page.evaluate(
        "() => { localStorage.setItem('colocam-learn-often', 'yes'); localStorage.setItem('colocam-unlearnt', '9'); }"
    )
    page.keyboard.press("a")
    until(page, "window.colocam.film.results.box[2][0] === 13")
    assert taught.library.active.title == "thresholds 2"
    assert box(page) == [18, 6, 38, 30]
