"""Make screenshots of the page in Chromium: those of docs/guide/serve.md, or all views in all sizes and both themes."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SIZES = {"1280": (1280, 800), "1920": (1920, 1080), "tablet": (820, 1180)}
THEMES = ("dark", "light")
GUIDE = {"library": "dark", "video": "dark", "panes": "dark", "learn": "light"}
"""Views that the guide shows, and their themes."""


def until(page: Page, condition: str, seconds: float = 60) -> None:
    """Wait for a condition in JavaScript; Playwright's own waiting needs eval, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"() => Boolean({condition})"):
        if time.monotonic() > end:
            raise TimeoutError(condition)
        page.wait_for_timeout(20)


def close_dialog(page: Page) -> None:
    """Press Escape; a key that is pressed before the dialog has gone would be lost."""
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('dialog')")


def views(page: Page, address: str, video: str) -> Iterator[str]:
    """Show one view after the other; gives their names."""
    page.goto(address)
    page.wait_for_selector(".video.ready")
    until(page, "[...document.querySelectorAll('.video img')].every((one) => one.complete)")
    yield "library"
    page.locator(".video.ready a", has_text=video).first.click()
    until(page, "window.colocam?.player.position >= 0")
    page.keyboard.press("j")
    until(page, "document.querySelector('.queue [aria-current=true], .queue:empty')")
    until(page, "document.querySelector('.queue canvas[data-drawn], .queue:empty')")
    yield "video"
    if page.locator(".compare").is_visible():
        page.keyboard.press("d")
        page.keyboard.press("d")
        page.keyboard.press("h")
        until(page, "document.querySelectorAll('.heat:not([hidden])').length === 2")
        yield "panes"
        page.keyboard.press("h")
        page.keyboard.press("d")
        page.keyboard.press("d")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    yield "keys"
    close_dialog(page)
    page.keyboard.press("c")
    page.wait_for_selector("dialog[open]")
    yield "class"
    close_dialog(page)
    page.get_by_role("button", name="Export…").click()
    page.wait_for_selector("#format")
    yield "export"
    close_dialog(page)
    page.get_by_role("button", name="Learn…").click()
    page.wait_for_selector("#in-use")
    if page.evaluate("fetch('/api/lessons').then((one) => one.json())")["state"] == "done":
        page.wait_for_selector(".changes h2")
        until(page, "[...document.querySelectorAll('.pair canvas')].every((one) => one.dataset.drawn)")
    yield "learn"


def opened(browser: Browser, size: str, theme: str) -> Page:
    """A page of a size and a theme."""
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    return browser.new_context(viewport=viewport, color_scheme=theme).new_page()  # type: ignore[arg-type]


def main() -> None:
    """Make the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="what 'colocam serve' printed")
    parser.add_argument("video", help="a part of the name of a video that is ready")
    parser.add_argument("folder", type=Path, help="for the images")
    parser.add_argument("--guide", action="store_true", help="only those of the guide, as JPEG")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for size in ["1280"] if arguments.guide else SIZES:
            for theme in THEMES:
                page = opened(browser, size, theme)
                for view in views(page, arguments.address, arguments.video):
                    if not arguments.guide:
                        page.screenshot(path=arguments.folder / f"serve-{view}-{size}-{theme}.png")
                    elif GUIDE.get(view) == theme:
                        page.screenshot(path=arguments.folder / f"serve-{view}.jpg", type="jpeg", quality=85)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
