"""What the page offers first, what it remembers, and how its dialogs are used, in Chromium."""

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
    results.rows.shot_probability[:] = 0.4
    one.page.reload()
    one.until("document.querySelector('.left')?.textContent.includes('1 video is probably of another class')")
    assert "Is it “cat”?" in one.page.locator(".other-class").inner_text()
    one.page.select_option("#which", "class in doubt")
    assert one.page.locator(".video").count() == 1
