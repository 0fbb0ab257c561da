"""Several objects in Chromium: added, selected, split, united, removed, hidden; undone in words; new classes."""

import pytest

from colocam.serve.marks import ACCEPTED, BOX, FOLLOWS, NONE, PREDICTED

SELECTED = "window.colocam.objects.selected"
LAST = "[...document.querySelectorAll('.message')].at(-1)?.textContent"


def test_add_split_unite_and_remove_by_keys_and_undo_it_all(one):
    one.open()
    one.until_box(5, 6, 25, 30)
    assert one.page.locator(".objects").is_hidden()  # one object is as simple as ever
    one.go(3, "i")
    one.until(f"{SELECTED} === 2")
    one.press_together("ArrowRight", "Shift+ArrowDown")
    second = one.box()
    assert second != [8, 6, 28, 30]
    one.page.evaluate("window.colocam.flush()")
    labels = one.page.locator(".object-list button").all_inner_texts()
    assert [text.split() for text in labels] == [["#1", "cat", "predicted"], ["#2", "cat", "corrected"]]
    one.go(9)
    assert one.box() is None
    one.press("b", "c")
    assert "the whole track of object 2" in one.dialog()
    one.press("2")
    objects = one.objects()
    assert objects[2].state.tolist() == [0] * 3 + [BOX] + [FOLLOWS] * 5 + [BOX] + [0] * 30
    assert set(objects[2].tag) == {"dog"}
    # Split the first one; the rest has a number of its own, and is one with the second after "unite".
    one.press("1")
    one.until(f"{SELECTED} === 1")
    one.go(20, "s")
    one.until(f"{SELECTED} === 3")
    objects = one.objects()
    assert objects[1].main.tolist() == [True] * 20 + [False] * 20
    assert objects[3].main.tolist() == [False] * 20 + [True] * 20
    one.press("u")
    assert "Unite object 3 with" in one.dialog()
    one.press("2")
    one.until(f"{SELECTED} === 2")
    objects = one.objects()
    assert list(objects) == [1, 2]
    assert objects[2].main.tolist() == [False] * 20 + [True] * 20
    assert objects[2].tag == ["dog"] * 40
    one.press("r")
    assert "27 boxes" in one.dialog()
    one.click("Remove the track")
    objects = one.objects()
    assert objects[2].state.tolist() == [PREDICTED] * 20 + [NONE] * 20
    # Each step back says what it was, and shows where.
    one.go(0)
    words = ["back to the prediction", "becomes object 2", "becomes object 3", "class dog", "box in frame 9"]
    frames = [0, 0, 20, 20, 9]
    for word, frame in zip(words, frames, strict=True):
        one.press("z")
        one.until(f"{LAST}.startsWith('Undone: ') && {LAST}.includes('{word}')")
        one.until_frame(frame)
    assert one.page.locator(".message").count() == 1
    one.press("z", "z")
    one.until("window.colocam.objects.all.size === 1")
    for _ in range(7):
        one.press("y")
    one.until(f"{LAST}.startsWith('Redone: object 2: back to the prediction')")
    assert one.objects()[2].state.tolist() == [PREDICTED] * 20 + [NONE] * 20


def test_select_hide_and_accept_what_is_shown(one):
    one.open()
    one.press("i")
    one.until(f"{SELECTED} === 2")
    assert one.page.evaluate("window.colocam.seen().others.map((other) => other.number)") == [1]
    one.press("T")
    one.until(f"{SELECTED} === 1")
    one.press("t", "q")
    one.until("window.colocam.seen().others.length === 0")
    assert one.page.locator("[aria-keyshortcuts=Q]").get_attribute("aria-pressed") == "true"
    one.go(1, "b", "a")  # nothing is said of the one that is hidden
    assert one.objects()[1].state.tolist() == [PREDICTED] * 40
    one.press("q", "a")
    objects = one.objects()
    assert objects[1].state.tolist() == [PREDICTED, ACCEPTED] + [PREDICTED] * 38
    assert objects[2].state.tolist() == [BOX, BOX] + [PREDICTED] * 38
    one.press("7")
    one.until(f"{LAST}.includes('There is no object 7')")
    # The mouse selects what it presses, and moves it.
    assert one.page.evaluate(SELECTED) == 2
    one.drag((8, 12), (9, 17))
    one.until(f"{SELECTED} === 1")
    assert one.box() == pytest.approx([7, 11, 27, 35], abs=0.2)


def test_objects_of_the_model_are_taken_by_a_change(one):
    one.page.goto(one.address)
    one.page.wait_for_selector(".video.ready")
    one.click("Settings…")
    one.page.locator("#setting-instances").check()
    one.click("Apply")
    one.until("!document.querySelector('dialog')")
    one.server.wait()
    try:
        one.open()
        one.go(6)
        one.until("window.colocam.seen().others.length === 1")
        assert "#?1 cat" in one.page.evaluate("window.colocam.seen().others[0].label")
        one.press("t")
        one.until_box(2, 32, 22, 46)
        one.press("ArrowRight")
        objects = one.objects()
        assert objects[2].state.tolist() == [0] * 6 + [BOX] + [0] * 33
        assert objects[2].base[4:12].tolist() == [[2, 32, 22, 46]] * 8
        assert one.page.evaluate(SELECTED) == 2
        one.press("z")
        one.until("[...window.colocam.objects.all.keys()].join() === '1,?1'")
        one.page.evaluate(  # one more that only the model knows
            "window.colocam.video.results.others.push("
            "{tag: 'cat', at: 5, boxes: [[40, 30, 60, 46], [41, 30, 61, 46]]}), window.colocam.changed()"
        )
        one.press("1", "T")
        one.until_box(41, 30, 61, 46)
        assert one.page.locator(".frame-facts").inner_text().split("Class probability")[1].split()[0] == "–"
        one.press("a")  # accepts all three; numbers are not used twice
        objects = one.objects()
        assert [(number, marks.state[6]) for number, marks in objects.items()] == [(1, 1), (3, 1), (4, 1)]
        assert objects[4].base[6].tolist() == [41, 30, 61, 46]
        assert one.page.evaluate(SELECTED) == 4
    finally:
        one.library.set_options(type(one.library.workspace.settings)())


def test_a_new_class_is_added_by_keys_and_used(one):
    one.open()
    one.press("c")
    one.page.wait_for_selector("dialog[open] #new-class")
    one.page.locator("#new-class").focus()
    one.page.keyboard.type("red fox 1")
    one.press("Enter")
    one.until(
        "!document.querySelector('dialog') && document.querySelector('.frame-facts').innerText.includes('red fox 1')"
    )
    one.until_saved()
    assert one.objects()[1].tag[0] == "red fox 1"
    one.press("i")
    assert one.objects()[2].tag[0] == "red fox 1"
    assert "red fox 1" in one.library.classes
    one.press("c")
    assert "red fox 1" in one.dialog()
