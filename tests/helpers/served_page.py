"""The page of ``colocam serve`` in Chromium, and a server over a real socket."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from colocam.serve.marks import frame_states, objects_of
from colocam.serve.server import hosts_of, make_app, web_server
from tests.helpers.served_library import PATIENCE, serving

CHROMIUM = Path("/usr/bin/chromium")
MODEL = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx"


class ServedPage:
    """A page of Playwright and the address of its server.

    Args:
        page: of Playwright.
        server: see :func:`served_library.serving`.
        address: where it listens.
        video: id of the video that methods mean; None: that of the server.
    """

    def __init__(self, page, server, address, video=None):
        self.page, self.address, self.video = page, address, video or server.video
        self.server, self.library, self.store = server, server.library, server.store
        page.goto(f"{address}/?token={server.workspace.token}")

    def open(self, video=None):
        """Open a video; its first frame is shown and the model's box is there."""
        self.video = video or self.video
        self.page.goto(f"{self.address}/#video={self.video}")
        self.until(f"window.colocam?.video.id === '{self.video}' && window.colocam.player.position >= 0")
        self.until("window.colocam.video.results && document.querySelector('.frame-facts').dataset.box !== undefined")

    def until(self, condition):
        """Wait for a condition in JavaScript; Playwright's own waiting needs eval, which the page forbids.

        What is not there yet makes it false, as while the page is drawn anew.
        """
        end = time.monotonic() + PATIENCE
        attempt = f"() => {{ try {{ return Boolean({condition}); }} catch {{ return false; }} }}"
        while not self.page.evaluate(attempt):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(20)

    def press(self, *keys):
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def press_together(self, *keys):
        """Press keys without a pause between them, however slow the machine is; a pause ends a move of the box."""
        pressed = [dict.fromkeys((f"{held.lower()}Key" for held in key.split("+")[:-1]), True) for key in keys]
        self.page.evaluate(
            "(all) => all.forEach((one) => window.dispatchEvent(new KeyboardEvent('keydown', one)))",
            [{"key": key.rpartition("+")[2], **held} for key, held in zip(keys, pressed, strict=True)],
        )

    def until_frame(self, frame):
        """Wait until a frame is shown."""
        self.until(f"document.querySelector('.number').dataset.frame == {frame}")

    def go(self, frame, *keys):
        """Show a frame, and press keys there."""
        self.page.evaluate("frame => window.colocam.go(frame)", frame)
        self.until_frame(frame)
        self.press(*keys)

    def drag(self, start, end):
        """Drag the mouse from a pixel of the video, 64 × 48 pixels, to another."""
        area, mouse = self.page.locator(".overlay").bounding_box(), self.page.mouse
        (x, y), far = (
            (area["x"] + x * area["width"] / 64, area["y"] + y * area["height"] / 48) for x, y in (start, end)
        )
        mouse.move(x, y)
        mouse.down()
        mouse.move(*far, steps=3)
        mouse.up()

    def play(self, look):
        """Play to the end; the position of each frame that is shown, with what a function in JavaScript gives then."""
        return self.page.evaluate(
            "() => new Promise((done) => { const { player } = window.colocam, seen = [], shown = player.onShown;"
            f" player.onShown = (at) => {{ shown(at); if (player.playing) seen.push([at, ({look})()]); }};"
            " player.onState = () => { if (!player.playing) done(seen); }; player.play(); })"
        )

    def until_box(self, *corners):
        """Wait until the page shows this box."""
        self.until(f"document.querySelector('.frame-facts').dataset.box === '{','.join(map(str, corners))}'")

    def box(self):
        """The box that the page shows."""
        text = self.page.locator(".frame-facts").get_attribute("data-box")
        return [float(value) for value in text.split(",")] if text else None

    def until_saved(self):
        """Wait until the page says that all is saved."""
        self.until(
            "document.getElementById('saved').textContent.startsWith('saved') && !window.colocam.saving.waiting.length"
        )

    def objects(self):
        """What the server knows of the objects, which is what the page shows, by their numbers."""
        self.page.evaluate("window.colocam.flush()")
        self.until_saved()
        video = self.library.video(self.video)
        _, history = self.store.history(self.video)
        objects = objects_of(history.actions, video.index.frames, video.index.cuts, video.results.absent)
        seen = self.page.evaluate(
            "Object.fromEntries([...window.colocam.objects.all].filter(([number]) => Number(number)).map("
            "([number, marks]) => [number, {state: [...marks.state], tag: marks.tag, main: [...marks.main], "
            "box: marks.box}]))"
        )
        assert set(seen) == {str(number) for number in objects}
        for number, marks in objects.items():
            own = seen[str(number)]
            assert own["state"] == marks.state.tolist()
            assert own["tag"] == marks.tag
            assert own["main"] == marks.main.astype(int).tolist()
            boxes = np.array([corners or [np.nan] * 4 for corners in own["box"]], float)
            np.testing.assert_allclose(boxes, marks.box, atol=1e-9)
        if not video.results.others.frame.size:
            assert self.page.evaluate("[...window.colocam.states]") == frame_states(objects.values()).tolist()
        return objects

    def said(self):
        """Kinds of the first actions of all corrections that are stored."""
        return [event.correction.actions[0].kind for event in self.store.events(self.video)]

    def click(self, name):
        """Click the button of a name."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def dialog(self):
        """The text of the dialog, once it is open."""
        return self.page.locator("dialog[open]").inner_text()


@contextmanager
def running(*words, before="", **how):
    """``colocam serve`` with a stored model in a process of its own, which runs ``before`` first; has its address."""
    command = [sys.executable, "-c", f"{before}from colocam.cli import main; main()", "serve", MODEL, *map(str, words)]
    with subprocess.Popen([*command, "--no-open"], stdout=subprocess.PIPE, text=True, **how) as child:
        child.address = child.stdout.readline().strip()
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def over_socket(app_at, port=0):
    """Serve the application that ``app_at(port)`` gives over a real socket; gives the address."""
    with socket.socket(proto=socket.IPPROTO_TCP) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        own.listen(64)
        at = own.getsockname()[1]
        running = web_server(app_at(at))
        running.config.timeout_graceful_shutdown = 1
        thread = threading.Thread(target=running.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{at}"
        finally:
            running.should_exit = True
            thread.join(10)


def listening(server, port=0):
    """Serve videos over a real socket; gives the address."""
    return over_socket(lambda at: make_app(server.library, hosts_of("127.0.0.1", at)), port)


@contextmanager
def served_page(page, folder, videos, **how):
    """The page of a server on ``folder`` with these videos."""
    with serving(folder, videos, **how) as server, listening(server) as address:
        yield ServedPage(page, server, address)
