"""Make the screenshots of docs/guide/serve.md in Chromium."""

import argparse
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SIZES = {"1280": (1280, 800), "1920": (1920, 1080), "tablet": (820, 1180)}


def take(page: Page, address: str, film: str, folder: Path, name: str) -> None:
    """Screenshots of the library, of a film and of the list of keys."""
    page.goto(address)
    page.wait_for_selector(".film.ready")
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"serve-library-{name}.png")
    page.locator(".film.ready a", has_text=film).first.click()
    page.wait_for_selector(".number[data-frame]")
    page.keyboard.press("j")
    page.wait_for_timeout(1500)
    page.screenshot(path=folder / f"serve-film-{name}.png")
    page.keyboard.press("?")
    page.wait_for_timeout(300)
    page.screenshot(path=folder / f"serve-keys-{name}.png")


def main() -> None:
    """Take all screenshots, in both themes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="what 'colocam serve' printed")
    parser.add_argument("film", help="a part of the name of a film that is ready")
    parser.add_argument("folder", type=Path, help="for the images")
    arguments = parser.parse_args()
    address, film, folder = arguments.address, arguments.film, arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for theme in ("dark", "light"):
                viewport = {"width": width, "height": height}
                context = browser.new_context(viewport=viewport, color_scheme=theme)  # type: ignore[arg-type]
                take(context.new_page(), address, film, folder, f"{size}-{theme}")
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
