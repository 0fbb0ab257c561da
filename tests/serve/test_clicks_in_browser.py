"""Click on objects in Chromium. The heat map of the model is 1 from 16, 12 to 32, 24 in frames of 64 by 48 pixels."""

import pytest


def click(one, x, y, **how):
    """Click on a pixel of the video."""
    area = one.page.locator(".overlay").bounding_box()
    place = {"x": x * area["width"] / 64, "y": y * area["height"] / 48}
    one.page.locator(".overlay").click(position=place, **how)


def shown(one):
    return one.page.evaluate("window.colocam.clicks.shown().map(({ inside }) => inside)")


def test_a_click_gives_a_box_the_next_adds_and_alt_takes_away(one):
    one.open()
    one.until_box(5, 6, 25, 30)
    click(one, 24, 18, modifiers=["Alt"])  # nothing to take away from
    one.until("document.querySelector('.message')?.textContent.includes('Click on the object first')")
    assert one.box() == [5, 6, 25, 30]
    click(one, 23, 19)
    one.until("window.colocam.clicks.shown().length === 1 && window.colocam.marks.state[0] === 3")
    first = one.box()
    assert first == pytest.approx([16, 12, 32, 24], abs=1.5)
    click(one, 50, 40)
    one.until("window.colocam.clicks.shown().length === 2 && window.colocam.marks.box[0][2] > 50")
    assert one.box()[:2] == pytest.approx(first[:2], abs=1)
    lower = one.box()[3]
    click(one, 30, lower - 0.6, modifiers=["Alt"])
    one.until(f"window.colocam.clicks.shown().length === 3 && window.colocam.marks.box[0][3] < {lower - 0.3}")
    assert shown(one) == [True, True, False]
    one.until_saved()
    assert one.said() == ["box", "box", "box"]
    one.press("z", "z")
    assert one.box() == first
    assert shown(one) == []  # the next click begins anew
    one.press("ArrowRight")
    click(one, 24, 18)
    one.until("window.colocam.clicks.shown().length === 1")


def test_a_drag_draws_and_a_click_on_another_object_selects_it(one):
    one.open()
    one.drag((40, 30), (60, 44))
    assert one.box() == pytest.approx([40, 30, 60, 44], abs=0.2)
    one.press("i")
    one.until("window.colocam.objects.selected === 2")
    click(one, 57, 42)
    one.until("window.colocam.objects.selected === 1")
    assert one.box() == pytest.approx([40, 30, 60, 44], abs=0.2)
    assert shown(one) == []


def test_what_the_server_cannot_box_is_said_and_nothing_is_lost(one):
    one.open()
    one.until_box(5, 6, 25, 30)
    one.page.route("**/clicks/**", lambda route: route.fulfill(status=422, json={"error": "finds no object there"}))
    click(one, 24, 18)
    one.until("document.querySelector('.message')?.textContent.includes('Finds no object there')")
    assert one.box() == [5, 6, 25, 30]
    assert shown(one) == []
    assert "busy" not in one.page.locator(".overlay").first.get_attribute("class")
