"""What the page offers first, what it remembers, and how its dialogs are used, in Chromium."""

import csv
import io
import zipfile

import pytest

SMALL = {"width": 390, "height": 844}


def test_letters_filter_the_classes_and_enter_takes_what_is_marked(one):
    one.open()
    one.press("c")
    one.page.wait_for_selector("dialog[open] #class-list")
    one.page.keyboard.type("d")
    options = one.page.locator("[role=option]")
    assert options.all_inner_texts() == ["dog", "New class “d”"]
    assert options.first.get_attribute("aria-selected") == "true"
    one.press("Enter")
    one.until("!document.querySelector('dialog') && window.colocam.seen().tag === 'dog'")
    one.press("c", "ArrowUp", "Enter")  # the class of the frame was marked, the one above it is "cat"
    one.until("!document.querySelector('dialog') && window.colocam.seen().tag === 'cat'")
    one.press("c")
    one.page.wait_for_selector("dialog[open] #class-list")
    one.page.keyboard.type("snow leopard")
    assert options.all_inner_texts() == ["New class “snow leopard”"]
    one.press("Enter")
    one.until("!document.querySelector('dialog') && window.colocam.seen().tag === 'snow leopard'")


def test_a_filter_without_hits_says_so_and_is_cleared(one):
    one.page.goto(one.address)
    one.page.wait_for_selector(".video.ready")
    one.page.fill("#find", "okapi")
    one.page.select_option("#which", "not ready")
    assert "No video with “okapi” in its name or class" in one.page.locator(".empty:visible").inner_text()
    one.click("Show all videos")
    one.page.wait_for_selector(".video.ready")
    assert one.page.locator(".empty:visible").count() == 0
    assert one.page.input_value("#which") == "all videos"


def test_a_video_opens_again_where_one_was(one):
    one.open()
    one.go(17)
    one.press("l")
    one.page.locator(".video.ready a").first.click()
    one.until_frame(17)
    one.page.reload()
    one.until_frame(17)


def test_the_theme_follows_the_system_until_one_is_chosen(one):
    def theme():
        return one.page.evaluate("document.documentElement.dataset.theme")

    one.open()
    for system in ("light", "dark"):
        one.page.emulate_media(color_scheme=system)
        one.until(f"document.documentElement.dataset.theme === '{system}'")
    one.page.locator("#theme").click()
    assert theme() == "light"
    one.page.emulate_media(color_scheme="light")
    one.page.emulate_media(color_scheme="dark")
    assert theme() == "light"
    one.page.locator("#theme").click()  # that of the system again
    one.page.emulate_media(color_scheme="light")
    one.until("document.documentElement.dataset.theme === 'light'")


@pytest.mark.parametrize("size", [{"width": 1024, "height": 700}, SMALL])
def test_the_keys_dialog_opens_at_its_title(one, size):
    one.page.set_viewport_size(size)
    one.open()
    one.press("?")
    one.page.wait_for_selector("dialog[open]")
    assert one.page.evaluate("document.querySelector('dialog').scrollTop") == 0
    assert one.page.locator("dialog h2").is_visible()


def test_layers_are_off_at_first_and_the_choice_is_remembered(one):
    one.open()
    assert one.page.evaluate("[window.colocam.map, window.colocam.outline]") == ["", False]
    one.press("h", "o")
    one.page.reload()
    one.until("window.colocam?.player.position >= 0 && window.colocam.seen().heat")
    assert one.page.locator("[aria-keyshortcuts=H]").get_attribute("aria-pressed") == "true"
    assert one.page.locator("[aria-keyshortcuts=O]").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, {"width": 1024, "height": 700}, SMALL])
def test_frames_to_check_come_first_beside_the_video(one, size):
    one.page.set_viewport_size(size)
    one.open()
    one.until("document.querySelector('.queue canvas[data-drawn]')")
    first, screen = (one.page.locator(name).first.bounding_box() for name in (".queue li", ".screen"))
    assert first["y"] + first["height"] <= size["height"]  # seen without scrolling
    beside = first["x"] >= screen["x"] + screen["width"] - 1
    below = 0 <= first["y"] - (screen["y"] + screen["height"]) < 60
    assert beside or below
    for place in (".tools", ".controls"):
        for button in one.page.locator(f"{place} button:visible").all():
            area = button.bounding_box()
            assert area["x"] + area["width"] <= size["width"]
    if size["width"] == 1024:  # one line
        assert len({button.bounding_box()["y"] for button in one.page.locator(".controls button").all()}) == 1


def test_the_menu_is_used_by_keys_alone(one):
    one.open()
    one.page.get_by_role("button", name="More", exact=True).focus()
    one.press("Enter")
    one.page.wait_for_selector("#more-menu:popover-open")
    one.press("ArrowDown", "ArrowUp", "Enter")
    one.page.wait_for_selector("dialog[open] #side-left")
    assert one.page.locator("#more-menu:popover-open").count() == 0
    one.press("Escape")
    assert one.said() == []  # arrows in the menu did not move the box


def test_the_library_says_what_is_left_to_do_and_which_class_is_in_doubt(one):
    results = one.library.video(one.video).results
    one.page.goto(one.address)
    one.until("document.querySelector('.left')?.textContent.includes('to check')")
    left = one.page.evaluate("document.querySelector('.left').textContent")
    assert left == f"Left to do: 1 video, {len(results.queue)} frames to check, about 1 minute."
    results.rows.probability[:] = 0.4
    one.library.tallies._known.clear()
    one.page.reload()
    one.until("document.querySelector('.left')?.textContent.includes('In 1 video, the class is probably wrong')")
    assert "Is it “cat”?" in one.page.locator(".other-class").inner_text()
    one.page.select_option("#which", "class in doubt")
    assert one.page.locator(".video").count() == 1


def test_a_class_in_doubt_is_asked_about_beside_the_video_until_somebody_says_it(one):
    one.library.video(one.video).results.rows.probability[:] = 0.4
    one.library.tallies._known.clear()
    one.open()
    question = "document.querySelector('.queue-box .other-class')?.checkVisibility()"
    one.until(question)
    assert "Is it “cat”?" in one.page.locator(".queue-box").inner_text()
    assert one.page.evaluate("window.colocam.seen().label").startswith("cat? ")
    one.press("a")
    one.until(f"!{question}")
    assert one.page.evaluate("window.colocam.seen().label").startswith("cat 9")
    one.press("z")
    one.until(question)
    one.press("Shift+C")
    one.page.locator("#video-class").select_option("dog")
    one.page.keyboard.press("Enter")
    one.until(f"!document.querySelector('dialog') && !{question}")
    one.server.wait()
    assert one.server.client.get("/api/videos").json()["videos"][0]["class"] == "dog"


def test_keys_lead_from_video_to_video(one, make_video, tmp_path):
    second = one.library.add(make_video(tmp_path / "second.mp4", 6))
    one.server.wait()
    one.page.reload()
    one.until("document.querySelectorAll('.video.ready').length === 2")
    one.page.select_option("#sort", "name")
    one.until("document.querySelector('.video .name').textContent === 'second'")
    video = "document.activeElement.hash?.slice('#video='.length)"
    for key, expected in zip("jjjk", (second.id, one.video, second.id, one.video), strict=True):
        one.press(key)
        assert one.page.evaluate(video) == expected
    one.press("Enter")
    one.until(f"window.colocam?.video.id === '{one.video}' && window.colocam.video.results")
    one.press("Shift+A", "x")
    one.until_frame(25)
    one.press("Shift+A")
    one.until_saved()
    one.press("l")
    one.until("document.querySelector('.badge')")
    one.press("j")  # to the one that is left to check
    assert one.page.evaluate(video) == second.id
    one.page.locator("#find").fill("j")  # letters that are typed lead nowhere
    one.page.locator("#find").press("k")
    assert one.page.evaluate("document.activeElement.id") == "find"


def test_an_export_says_what_is_checked_and_can_leave_the_rest_out(one):
    one.open()
    one.go(3, "a")
    one.until_saved()
    one.click("Export…")
    one.until("document.querySelector('.held p')?.textContent.includes('1 checked')")
    assert "1 checked, 39 unchecked" in one.dialog()
    one.page.select_option("#format", "csv")
    one.page.locator("#leave-unchecked").check()
    with one.page.expect_download() as download:
        one.click("Export")
    with zipfile.ZipFile(download.value.path()) as zipped:
        rows = csv.DictReader(io.StringIO(zipped.read("video.csv").decode()))
        assert [row["frame"] for row in rows] == ["3"]


def test_a_card_blames_the_machine_and_offers_another_try(one):
    video = one.library.video(one.video)
    video.state, video.problem, video.fault = "failed", "memory ran out", "machine"
    one.page.goto(one.address)
    one.page.wait_for_selector(".video.failed")
    assert "This machine could not do it: memory ran out" in one.page.locator(".video.failed").inner_text()
    one.click("Retry")
    one.page.wait_for_selector(".video.ready")


def test_the_button_says_before_one_begins_that_a_model_cannot_learn(one):
    one.page.goto(one.address)
    one.until("document.getElementById('learn').textContent === 'Cannot learn…'")
    one.click("Cannot learn…")
    one.until("document.querySelector('dialog[open]')?.innerText.includes('An ONNX file cannot learn')")
    assert one.page.get_by_role("button", name="Learn from all corrections").is_disabled()


PROOF = {"videos": 3, "corrections": 12, "before": 0.7, "after": 0.72, "low": -0.01, "high": 0.05, "missing": 2}
LESSON = {"state": "done", "lines": [], "stages": [], "held_out": 12, "corrections": 40, "corrected_videos": 9}


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("unclear", "Not enough yet: correct 2 more videos."), ("better", "The new model is better.")],
)
def test_a_lesson_proves_or_asks_for_more(one, verdict, words):
    key = one.library.active.key
    models = [{"key": key, "title": "run", "seen": 1}, {"key": "b" * 16, "title": "lesson 1", "seen": 1}]
    answers = {
        "lessons": {**LESSON, "model": "b" * 16, "proof": {**PROOF, "verdict": verdict}},
        "models": {"active": key, "first": key, "videos": 1, "models": [{**each, "problem": ""} for each in models]},
        "changes*": {"videos": 1, "compared": 1, "moved": []},
    }

    def fulfilled(answer):
        return lambda route: route.fulfill(json=answer)

    for path, answer in answers.items():
        one.page.route(f"**/api/{path}", fulfilled(answer))
    one.page.goto(one.address)
    one.page.locator("#learn").click()
    one.until("document.querySelector('.proof')")
    said = one.dialog()
    assert words in said
    assert "40 corrections of 9 videos" in said
    assert "+0.020, 95 % interval −0.010 to +0.050" in said
    assert "12 held-out corrections of 3 videos" in said
    offered = one.page.get_by_role("button", name="Use the new model").count()
    assert offered == (verdict == "better")


def test_the_library_without_the_server_says_what_to_do(one):
    one.page.goto(one.address)
    one.page.wait_for_selector(".video.ready")
    one.page.route("**/api/videos", lambda route: route.abort())
    one.page.reload()
    one.until("document.querySelector('.empty:not([hidden])')?.innerText.includes('Start the same command again')")
    one.page.unroute("**/api/videos")
    one.page.wait_for_selector(".video.ready")
    assert one.page.locator(".empty:visible").count() == 0
