"""The page from 390 to 1920 pixels wide, dark and light: nothing is cut off, all text can be read.

The views are those of the screenshots of the guide.
"""

import importlib.util
import zipfile
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


def looker(script, one):
    """A function that looks at what is shown in all sizes and both themes, and the faults it found."""
    found = []

    def look(where):
        layout = one.page.evaluate_handle(LAYOUT)
        for size, (width, height) in {**script.SIZES, **SMALL}.items():
            one.page.set_viewport_size({"width": width, "height": height})
            found.extend(f"{where}, {size}: {text}" for text in layout.evaluate("layout => layout.cutOff()"))
            if size == "phone":
                found.extend(f"{where}, {size}: {text}" for text in layout.evaluate("layout => layout.small()"))
        for theme in script.THEMES:
            pale = layout.evaluate("(layout, theme) => layout.pale(theme)", theme)
            found.extend(f"{where}, {theme}: {text}" for text in pale)

    return look, found


def test_nothing_is_cut_off_and_all_text_can_be_read(script, one):
    shown = []
    look, found = looker(script, one)
    for view in script.views(one.page, one.address, "video"):
        shown.append(view)
        look(view)
        for key in "bnai" if view == "video" else "":  # each state has a color; several objects have a list
            one.press(key)
            look(f"{view}, {key}")
            one.press("z")
    assert shown == ["library", "video", "keys", "class", "export", "learn"]
    assert found == []


MEMORY = {"state": "failed", "fault": "machine", "problem": "memory ran out: close other programs"}
BROKEN = {"state": "failed", "fault": "video", "frames": None, "problem": "cannot read it: not a complete video file"}
HALF = {"state": "localizing", "done": 0.6}
DOUBT = {"to_check": 14, "doubtful": 0.3, "checked": 0.3, "interpolated": 0.2, "class_in_doubt": True, "found": "bird"}


def test_a_library_of_every_kind_of_card_hides_no_button(script, one):
    one.page.wait_for_selector(".video.ready")
    answer = one.page.evaluate("fetch('/api/videos').then((answer) => answer.json())")
    long = "harbor/a recording of the camera over the gate at night, 2024-05-01 to 2024-05-02"
    kinds = [MEMORY, BROKEN, HALF, DOUBT]
    cards = [{**answer["videos"][0], "id": f"{at}", "name": long, **kind} for at, kind in enumerate(kinds)]
    one.page.route("**/api/videos", lambda route: route.fulfill(json={**answer, "videos": cards}))
    one.page.reload()
    one.until("document.querySelectorAll('.video').length === 4")
    look, found = looker(script, one)
    look("cards")
    assert found == []
    assert one.page.locator(".video", has_text="Retry").count() == 2
    assert "Cannot read it" in one.page.locator(".video.failed").nth(1).inner_text()


def test_the_question_about_a_class_fits_beside_the_video(script, one):
    one.library.video(one.video).results.rows.probability[:] = 0.4
    one.library.tallies._known.clear()
    one.open()
    one.until("document.querySelector('.queue-box .other-class')?.checkVisibility()")
    look, found = looker(script, one)
    look("class in doubt")
    assert found == []


def test_an_empty_library_says_how_it_is_filled(script, one):
    answer = one.page.evaluate("fetch('/api/videos').then((answer) => answer.json())")
    one.page.route("**/api/videos", lambda route: route.fulfill(json={**answer, "videos": []}))
    one.page.reload()
    one.until("document.querySelector('.empty:not([hidden])')")
    look, found = looker(script, one)
    look("empty")
    assert found == []
    assert "Add videos…" in one.page.locator(".empty:not([hidden])").inner_text()
    assert not one.page.locator("#find").is_visible()  # there is nothing to find


@pytest.mark.parametrize("video", ["nothing", "0" * 24])
def test_a_link_to_an_unknown_video_leads_to_the_library(script, one, video):
    one.page.goto(f"{one.address}/#video={video}")
    one.until("document.querySelector('[role=alert] a')")
    look, found = looker(script, one)
    look("unknown")
    assert found == []
    assert "not in the library" in one.page.locator("[role=alert]").inner_text()
    one.page.get_by_role("link", name="Back to the library").click()
    one.until("document.querySelector('.video.ready')")


def test_dialogs_and_the_menu_fit_on_every_screen(script, one):
    look, found = looker(script, one)
    one.page.get_by_role("button", name="Settings…").click()
    look("settings")
    one.page.keyboard.press("Escape")
    one.open()
    for key in "egi":
        one.press(key)
        if key == "i":  # two objects: their tracks can be united, or one removed
            one.press("ArrowLeft", "u")
        one.until("document.querySelector('dialog[open]')")
        look(key)
        script.close_dialog(one.page)
    one.press("r")
    look("r")
    script.close_dialog(one.page)
    one.page.set_viewport_size({"width": 390, "height": 844})
    one.page.get_by_role("button", name="More", exact=True).click()
    area = one.page.locator("#more-menu").bounding_box()
    assert area["y"] >= 0
    assert area["y"] + area["height"] <= 844
    assert area["x"] + area["width"] <= 382  # and not at the very edge
    one.press("Escape")
    assert found == []


def test_a_dialog_without_keys_can_be_left(one):
    one.open()
    one.press("g")
    one.page.get_by_role("button", name="Cancel").click()
    one.until("!document.querySelector('dialog')")
    assert one.page.locator(".number").get_attribute("data-frame") == "0"


def test_a_file_of_several_videos_is_asked_about(script, one, tmp_path):
    path = tmp_path / "sequences.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        for name, x in (("a long name of a sequence of the harbor at night", 10), ("MOT17-04", 12)):
            zipped.writestr(f"{name}/gt/gt.txt", f"4,-1,{x},8,20,20,1,-1,1\n")
    one.open()
    one.page.get_by_role("button", name="More", exact=True).click()
    one.page.locator("#more-menu button", has_text="Import…").click()
    one.page.locator("#format").select_option("mot")
    one.page.locator("#file").set_input_files(path)
    one.page.get_by_role("button", name="Import", exact=True).click()
    one.page.locator("#labels-of").select_option("MOT17-04")
    look, found = looker(script, one)
    look("question")
    assert found == []
    one.page.get_by_role("button", name="Import these into").click()
    one.until("document.querySelector('dialog output').textContent.includes('changed')")
    assert [row["x1"] for row in one.server.rows() if row["frame"] == "3"] == ["12.0"]
