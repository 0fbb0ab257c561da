"""Measure the page of 'colocam serve' in Chromium: first image, seeking, frames per second while playing.

``python scripts/serve_speed.py FOLDER`` makes two films in FOLDER, starts a server on them, waits until they are ready,
and opens each several times. No colocam server and no browser need to run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import cv2
import numpy as np
from playwright.sync_api import Browser, sync_playwright

from colocam.video.writer import VideoWriter

CHROMIUM = "/usr/bin/chromium"
MODEL = Path(__file__).parents[1] / "tests" / "stored" / "version-0.1.0" / "model.onnx"
SERVE = (sys.executable, "-c", "from colocam.cli import main; main()", "serve")
PARTS = (11, 3, 19, 7, 15, 1, 21, 9, 17, 5)
"""Places of the seeks, in 23rds of the film."""
PLAYED = 4
"""Seconds that a film is played."""


class Kind(NamedTuple):
    """A film to make."""

    width: int
    height: int
    fps: int
    frames: int


FILMS = {"small": Kind(640, 480, 60, 600), "large": Kind(1920, 1080, 25, 250)}

WATCH = """
window.firsts = {};
const look = () => {
  const now = performance.now(), { firsts } = window;
  if (document.querySelector(".number")?.dataset.frame) firsts.image ??= now;
  if (document.querySelector(".still:not([hidden])")) firsts.exact ??= now;
  if (!firsts.exact) requestAnimationFrame(look);
};
look();
"""
"""Note when the first frame is on the screen, and when the one of the model's own reader is."""
SEEK = """
(position) => new Promise((done) => {
  const { player } = window.colocam, begun = performance.now(), shown = player.onShown;
  player.onShown = (at) => {
    shown(at);
    if (at === position) { player.onShown = shown; requestAnimationFrame(() => done(performance.now() - begun)); }
  };
  player.go(position);
})
"""
PLAY = """
(length) => new Promise((done) => {
  const view = window.colocam, { player } = view, shown = player.onShown, begun = performance.now();
  let drawn = 0, spent = 0, ticks = 0;
  player.onShown = (at) => { const from = performance.now(); shown(at); spent += performance.now() - from; drawn++; };
  const tick = () => {
    ticks++;
    const seconds = (performance.now() - begun) / 1000;
    if (seconds < length) { requestAnimationFrame(tick); return; }
    player.onShown = shown;
    player.pause();
    done({ screen: ticks / seconds, frames: drawn / seconds, milliseconds: spent / Math.max(1, drawn) });
  };
  player.go(0).then(() => { player.play(); tick(); });
})
"""


def make_films(folder: Path) -> list[Path]:
    """A disc that crosses a moving texture; films that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, kind in FILMS.items():
        paths.append(path := folder / f"{name}.mp4")
        if path.exists():
            continue
        noise = np.random.default_rng(0).integers(0, 256, (kind.height, kind.width, 3)).astype(np.uint8)
        texture = np.asarray(cv2.GaussianBlur(noise, (0, 0), 4), np.uint8)
        with VideoWriter(path, kind.width, kind.height, kind.fps) as writer:
            for number in range(kind.frames):
                image = np.roll(texture, number, axis=1)
                centre = (kind.width * (number + 1) // (kind.frames + 2), kind.height // 2)
                writer.write(np.asarray(cv2.circle(image, centre, kind.height // 5, (230, 60, 40), -1), np.uint8))
    return paths


@contextmanager
def server(model: Path, films: list[Path], out: Path) -> Iterator[str]:
    """A server in a process of its own; gives its address."""
    arguments = [str(one) for one in (model, *films, "-o", out, "--no-open")]
    with subprocess.Popen([*SERVE, *arguments], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip()
        finally:
            child.terminate()


def wait_for_films(browser: Browser, address: str, count: int) -> list[dict[str, object]]:
    """The films, once all are ready."""
    context = browser.new_context()
    context.request.get(address)  # its token becomes a cookie
    while True:
        films: list[dict[str, object]] = context.request.get(urljoin(address, "/api/films")).json()["films"]
        if len(films) == count and all(film["state"] == "ready" for film in films):
            context.close()
            return films
        time.sleep(0.5)


def measure(browser: Browser, address: str, film: str, frame: int) -> dict[str, float]:
    """Open a film at a frame in a browser without a cache, seek in it and play it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.request.get(address)
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(urljoin(address, f"/#film={film}&frame={frame}"), wait_until="commit")
    while not (first := page.evaluate("window.firsts")).get("exact"):
        page.wait_for_timeout(100)
    page.wait_for_timeout(1500)
    count = page.evaluate("window.colocam.film.frame.length")
    seeks = [page.evaluate(SEEK, count * part // 23) for part in PARTS]
    played = page.evaluate(PLAY, PLAYED)
    context.close()
    return {
        "first image, ms": first["image"],
        "first exact image, ms": first["exact"],
        "seek, median ms": statistics.median(seeks),
        "seek, longest ms": max(seeks),
        "screen, 1/s": played["screen"],
        "frames shown, 1/s": played["frames"],
        "work a frame, ms": played["milliseconds"],
    }


def main() -> None:
    """Print one line of JSON for each film: medians of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the films and the data of the server; may exist")
    parser.add_argument("--run", type=Path, default=MODEL, help="run folder or ONNX file")
    parser.add_argument("--rounds", type=int, default=5, help="how often each film is opened")
    arguments = parser.parse_args()
    films = make_films(arguments.folder / "films")
    with (
        server(arguments.run, films, arguments.folder / "page") as address,
        sync_playwright() as started,
        started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        for film in wait_for_films(browser, address, len(films)):
            # From the back, so that no frame was read before and the film is opened anew each time.
            places = [10 * (arguments.rounds - one) for one in range(1, arguments.rounds + 1)]
            found = [measure(browser, address, str(film["id"]), frame) for frame in places]
            medians = {name: round(statistics.median(one[name] for one in found), 1) for name in found[0]}
            size = f"{film['width']}×{film['height']}"
            told = {"film": film["name"], "size": size, **medians, "load": round(os.getloadavg()[0], 1)}
            print(json.dumps(told, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
