"""The page from 390 to 1920 pixels wide, dark and light: nothing is cut off, all text can be read.

The views are those of the screenshots of the guide.
"""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "serve_screenshots.py"

SMALL = {"1024": (1024, 700), "phone": (390, 844), "1280 again": (1280, 800)}
LAYOUT = (Path(__file__).parents[1] / "helpers" / "page_layout.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    spec = importlib.util.spec_from_file_location("serve_screenshots", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_cut_off_and_all_text_can_be_read(script, one):
    found, shown = [], []

    def look(where):
        layout = one.page.evaluate_handle(LAYOUT)
        for size, (width, height) in {**script.SIZES, **SMALL}.items():
            one.page.set_viewport_size({"width": width, "height": height})
            found.extend(f"{where}, {size}: {text}" for text in layout.evaluate("layout => layout.cutOff()"))
        for theme in script.THEMES:
            pale = layout.evaluate("(layout, theme) => layout.pale(theme)", theme)
            found.extend(f"{where}, {theme}: {text}" for text in pale)

    for view in script.views(one.page, one.address, "video"):
        shown.append(view)
        look(view)
        for key in "bnai" if view == "video" else "":  # each state has a color; several objects have a list
            one.press(key)
            look(f"{view}, {key}")
            one.press("z")
    assert shown == ["library", "video", "keys", "class", "export", "learn"]
    assert found == []
