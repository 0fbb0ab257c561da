"""Measure the page of 'colocam serve' in Chromium: first image, seeking, frames per second while playing."""

import argparse
import json
import os
import statistics

from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"

FIRST = """
() => new Promise((done) => {
  const shown = () => document.querySelector(".still:not([hidden])");
  const look = () => (shown() ? done(performance.now()) : requestAnimationFrame(look));
  look();
})
"""
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
() => new Promise((done) => {
  const view = window.colocam, draw = view.overlay.draw.bind(view.overlay), begun = performance.now();
  let drawn = 0, spent = 0, ticks = 0;
  view.overlay.draw = () => { const from = performance.now(); draw(); spent += performance.now() - from; drawn++; };
  const tick = () => {
    ticks++;
    const seconds = (performance.now() - begun) / 1000;
    if (seconds < 3) { requestAnimationFrame(tick); return; }
    view.player.pause();
    done({ screen: ticks / seconds, overlay: drawn / seconds, milliseconds: spent / Math.max(1, drawn) });
  };
  view.player.go(0).then(() => { view.player.play(); tick(); });
})
"""


def measure(page: Page, address: str, film: str) -> dict[str, object]:
    """Open a film by its id, seek in it and play it."""
    page.goto(f"{address.rstrip('/')}/#film={film}")
    first = page.evaluate(FIRST)
    page.wait_for_timeout(2000)
    count = page.evaluate("window.colocam.film.frame.length")
    seeks = [page.evaluate(SEEK, count * part // 23) for part in (11, 3, 19, 7, 15, 1, 21, 9, 17, 5)]
    played = page.evaluate(PLAY)
    return {
        "first image, ms": round(first),
        "seek, median ms": round(statistics.median(seeks)),
        "seek, longest ms": round(max(seeks)),
        "screen, frames/s": round(played["screen"], 1),
        "overlay, frames/s": round(played["overlay"], 1),
        "overlay, ms a frame": round(played["milliseconds"], 2),
    }


def main() -> None:
    """Measure films that are ready."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="what 'colocam serve' printed")
    parser.add_argument("film", nargs="?", default="", help="a part of the name of a film; default: all")
    arguments = parser.parse_args()
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        request = browser.new_context().request
        films = request.get(f"{arguments.address.rstrip('/')}/api/films").json()["films"]
        ready = [film for film in films if film["state"] == "ready" and arguments.film in film["name"]]
        if not ready:
            parser.error("no such film is ready: wait until the page shows it")
        for film in ready:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            found = measure(page, arguments.address, film["id"])
            load = f"{os.getloadavg()[0]:.1f}"
            print(
                json.dumps({"film": film["name"], "size": f"{film['width']}x{film['height']}", **found, "load": load})
            )
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
