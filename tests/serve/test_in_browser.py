"""Correct in Chromium: by keys and by the mouse, undone and redone, in two tabs, without the server, and exported."""

import zipfile

import pytest

from colocam.serve.marks import ACCEPTED, ASKED, BOX, FOLLOWS, FOLLOWS_NONE, NONE, Action, Correction
from tests.helpers.served_library import LeavesAndReturns, gray_video
from tests.helpers.served_page import ServedPage, listening, served_page


def test_correct_undo_redo_and_reload(one):
    one.open()
    one.until_box(5, 6, 25, 30)
    one.press_together("ArrowRight", "Shift+ArrowRight", "ArrowDown", "Alt+ArrowRight")
    assert one.box() == [16, 7, 37, 31]
    one.until_saved()
    one.press("n")
    assert one.box() is None
    one.press("z")
    assert one.box() == [16, 7, 37, 31]
    one.press("z")
    assert one.box() == [5, 6, 25, 30]
    one.press("z")  # not past the prediction
    assert one.box() == [5, 6, 25, 30]
    one.press("y")
    one.until_saved()
    one.page.reload()
    one.until("document.querySelector('.frame-facts')?.dataset.box === '16,7,37,31'")
    one.press("y")
    assert one.box() is None
    one.until_saved()
    assert one.store.history(one.video)[0] == 6
    one.press("z")
    one.press_together("Alt+Shift+ArrowDown", "Ctrl+ArrowLeft", "Ctrl+ArrowUp")  # all four sides
    assert one.box() == [15, 6, 37, 41]
    one.press_together("Ctrl+Shift+ArrowLeft", "Ctrl+Shift+ArrowLeft", "Alt+Shift+ArrowDown")  # not out of the frame
    assert one.box() == [0, 6, 37, 48]
    one.until_saved()


def test_frames_between_marked_ones_follow_as_the_server_says(one):
    one.open()
    for number, key in ((4, "Shift+ArrowDown"), (14, "Shift+ArrowUp"), (16, "n"), (20, "n"), (30, "A"), (33, "b")):
        one.go(number, key)
    assert {FOLLOWS, FOLLOWS_NONE, ACCEPTED} <= set(one.objects()[1].state.tolist())
    one.press("z", "z", "z", "z", "z", "z")
    for number, key in ((10, "]"), (18, "n"), (28, "[")):  # the object leaves and enters
        one.go(number, key)
    state = one.objects()[1].state.tolist()
    assert state == [0] * 10 + [NONE] * 15 + [NONE] * 3 + [0] * 12  # a cut before frame 25 ends the stretch


def test_the_page_asks_whether_the_object_was_there_all_the_time(page, make_video, tmp_path):
    video = gray_video(make_video, tmp_path / "video.mp4", range(60, 92))
    with served_page(page, tmp_path / "page", [video], model=LeavesAndReturns) as opened:
        opened.open()
        for number in (28, 7):
            opened.go(number, "Shift+ArrowDown")

        def state():
            return opened.objects()[1].state.tolist()

        assert state() == [0] * 7 + [BOX, 0] + [ASKED] * 17 + [0, 0, BOX] + [0] * 3
        assert opened.page.evaluate("window.colocam.queue[0]") == [17, "was it there in these 17 frames, too?"]
        opened.press("j")
        opened.until_frame(17)
        opened.press("Shift+N")
        assert state()[7:29] == [BOX, 0] + [NONE] * 17 + [0, 0, BOX]
        opened.press("z", "Shift+A")
        assert state()[7:29] == [BOX, FOLLOWS] + [BOX] * 17 + [FOLLOWS, FOLLOWS, BOX]
        opened.press("l")
        opened.until("document.querySelector('.doubt')?.textContent.includes('59 % checked · 9 % interpolated')")


def test_drag_draws_moves_and_resizes(one):
    one.open()
    one.drag((15, 18), (25, 20))
    assert one.box() == pytest.approx([15, 8, 35, 32], abs=0.2)
    one.drag((35, 32), (40, 40))
    assert one.box() == pytest.approx([15, 8, 40, 40], abs=0.2)
    one.drag((45, 10), (60, 30))
    assert one.box() == pytest.approx([45, 10, 60, 30], abs=0.2)
    one.until_saved()


def test_changes_wait_while_the_server_is_away(page, served):
    with listening(served) as address:
        opened = ServedPage(page, served, address)
        opened.open()
    opened.press("a")
    opened.until("document.getElementById('saved').textContent.includes('the server is not reachable')")
    opened.press("n", "l")
    opened.until("document.querySelector('.library')")
    page.go_back()
    opened.until("document.querySelector('.empty')?.textContent.includes('opens when the server is back')")
    assert served.store.history(served.video)[0] == 0
    with listening(served, int(address.rpartition(":")[2])):
        opened.until("document.querySelector('.frame-facts .kind')?.textContent === 'no object'")
        opened.until_saved()
    assert opened.said() == ["accepted", "none"]


def test_a_video_that_is_left_and_opened_again_sends_each_correction_once(one):
    one.open()
    one.page.route("**/history", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    one.press("a")
    one.until("document.getElementById('saved').textContent.includes('the server is not reachable')")
    one.page.evaluate("window.left = window.colocam.saving")
    one.press("l")
    one.until("document.querySelector('.library')")
    one.open()
    one.until("window.colocam.saving !== window.left && window.colocam.saving.waiting.length === 1")
    one.page.evaluate("window.left.sendFirst = () => { window.twice = true; }; window.left.send();")
    assert not one.page.evaluate("window.twice")
    one.press("n")
    one.page.unroute("**/history")
    one.until_saved()
    assert one.said() == ["accepted", "none"]
    assert one.page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('colocam-waiting'))") == []


def test_a_correction_waits_until_the_earlier_ones_are_known(one):
    one.open()
    one.press("n")
    one.until_saved()
    one.press("l")
    one.until("document.querySelector('.library')")
    path = f"/api/videos/{one.video}/history"
    one.page.evaluate(  # the server answers, but late
        """path => {
          const { fetch } = window, late = new Promise((done) => { window.answer = done; });
          window.fetch = async (url, how) => { if (url === path && !how.method) await late; return fetch(url, how); };
        }""",
        path,
    )
    one.page.evaluate(f"location.hash = 'video={one.video}'")
    one.until("window.colocam?.video.results && document.querySelector('.frame-facts').dataset.box !== undefined")
    one.press("a")  # of the frame that says "no object"
    one.until("window.colocam.saving.waiting.length === 1")
    one.page.evaluate("window.answer()")
    one.until_saved()
    assert one.page.locator("dialog").count() == 0
    assert one.said() == ["none", "accepted"]


def test_what_the_server_refuses_is_said_and_sent_again(one):
    one.open()
    one.store._database.execute("PRAGMA query_only=ON")
    try:
        one.press("n")
        one.until("document.getElementById('saved').textContent.includes('corrections.sqlite: it cannot be written')")
        assert "away" not in one.page.locator("#saved").inner_text()
    finally:
        one.store._database.execute("PRAGMA query_only=OFF")
    one.until_saved()
    assert one.said() == ["none"]


def test_enter_finishes_the_frames_to_check(one):
    one.open()
    one.until("window.colocam.queue.length > 2")
    left, frames = one.page.evaluate("window.colocam.queue.length"), []
    one.press("j")
    for number in range(left):
        one.until(f"{NUMBER} === window.colocam.queue[0][0]")
        frames.append(one.page.evaluate(NUMBER))
        if number == 1:
            one.press("ArrowRight")
        one.press("Enter")
        one.until(f"window.colocam.queue.length === {left - number - 1}")
    one.until("document.querySelector('.message')?.textContent.includes('No frame is left to check')")
    one.until_saved()
    said = [event.correction.actions[0] for event in one.store.events(one.video)]
    assert [action.start for action in said] == frames
    assert [action.kind for action in said] == ["accepted", "box"] + ["accepted"] * (left - 2)
    one.press("l")  # what is said of a video goes with it
    one.until("document.querySelector('.library') && !document.querySelector('.message')")


def test_each_number_has_one_name_and_one_meaning(one):
    one.open()
    one.until("window.colocam.seen().label === 'cat 90 %  box 0.90'")  # as in an annotated video
    assert {row["probability"] for row in one.server.rows()} == {
        "0.6"
    }  # of each frame; the page shows that of the shot
    facts = one.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.frame-facts > div')].map((each) =>"
        " [each.querySelector('dt').textContent, [each.querySelector('dd').textContent, each.title]]))"
    )
    shown = {name: facts[name][0] for name in ("Class", "Class probability", "Box score", "Presence")}
    assert shown == {"Class": "cat", "Class probability": "90 %", "Box score": "0.90", "Presence": "80 %"}
    assert float(facts["Doubt"][0]) < 0.5
    columns = {"Class probability": "probability", "Box score": "score", "Presence": "presence"}
    assert all(f"“{column}”" in facts[name][1] for name, column in columns.items())
    one.press("n")  # the numbers of a box that is not shown are not shown
    one.until("document.querySelector('.frame-facts').innerText.includes('no object')")
    assert "0.90" not in one.page.locator(".frame-facts").inner_text()


def test_a_video_that_is_not_localized_says_so_and_cards_show_their_box(one):
    one.page.goto(one.address)
    one.until("document.querySelector('.video svg rect')")
    rectangle = one.page.locator(".video svg rect")
    position = int(one.library.video(one.video).index.thumbnail[0])
    assert float(rectangle.get_attribute("x")) == 5 + position
    video = one.library.video(one.video)
    kept, video.results, video.results_by_key, video.state = video.results, None, {}, "localizing"
    one.page.goto(f"{one.address}/#video={one.video}")
    one.until("document.querySelector('.frame-facts .kind')?.textContent === 'not localized yet'")
    assert "once the video is localized" in one.page.locator(".queue-head").inner_text()
    assert "–" in one.page.locator(".number-fact").first.inner_text()
    video.results, video.results_by_key, video.state = kept, {one.library.active.key: kept}, "ready"
    one.until_box(5, 6, 25, 30)


def test_the_library_is_filtered_by_words_and_by_what_is_left_to_do(one, make_video, tmp_path):
    # Corrections are kept by content, and no other test of this module has a video of 13 frames.
    other = one.library.add(make_video(tmp_path / "zebra.mp4", 13))
    one.server.wait()
    whole = Correction(kind="edit", actions=[Action(kind="accepted", start=0, stop=13)])
    one.store.append(other.id, f"a-{other.id}", 0, whole)
    one.page.goto(one.address)
    one.until("document.querySelectorAll('.video.ready').length === 2")

    def names():
        return one.page.locator(".video .name").all_inner_texts()

    for words, found in (("ZEB", ["zebra"]), ("cat", ["video", "zebra"]), ("horse", [])):
        one.page.fill("#find", words)
        assert names() == found
    assert "0 of 2 videos" in one.page.locator(".bar").inner_text()
    one.page.fill("#find", "")
    for which, found in (
        ("to check", ["video"]),
        ("all checked", ["zebra"]),
        ("not ready", []),
        ("all videos", ["video", "zebra"]),
    ):
        one.page.select_option("#which", which)
        assert names() == found


def test_two_pages_that_change_one_frame_are_asked(one):
    one.open()
    theirs = Correction(kind="edit", actions=[Action(kind="box", start=0, stop=1, box=[1, 2, 11, 12])])
    one.store.append(one.video, f"a-{one.video}", 0, theirs)
    one.press("n")
    assert "box in frame 0 (1, 2, 11, 12)" in one.dialog()
    assert "no object in frame 0" in one.dialog()
    one.press("Escape")  # no choice: nothing is lost
    one.page.wait_for_selector("dialog[open]")
    one.click("Keep theirs")
    one.until_box(1, 2, 11, 12)
    # Another frame does not contradict, nor does another object.
    drawn = Action(kind="box", start=0, stop=1, track=2, box=[1, 2, 11, 12])
    other = Correction(kind="edit", actions=[Action(kind="none", start=9, stop=10), drawn])
    one.store.append(one.video, f"b-{one.video}", 1, other)
    one.press("n")
    one.until("window.colocam.objects.all.size === 2")
    assert list(one.objects()) == [1, 2]
    assert one.said() == ["box", "none", "none"]
    assert one.page.locator("dialog").count() == 0


def test_add_a_video_export_it_and_take_labels_back(one, make_video, tmp_path):
    one.page.goto(one.address)
    one.page.wait_for_selector(".video.ready")
    video = make_video(tmp_path / "more" / "<img src=x onerror=alert(1)>.mp4", 12)
    one.page.set_input_files("#add-video", video)
    one.until("document.querySelectorAll('.video.ready').length === 2")
    assert one.page.locator(".video .name").filter(has_text="<img").count() == 1
    one.page.locator(".video", has_text="<img").locator("a").click()
    one.page.wait_for_selector(".number[data-frame]")
    one.until("document.querySelector('.frame-facts').dataset.box")
    one.press("Shift+N")
    assert "all 12 boxes of this shot, frames 0 to 11" in one.dialog()
    one.press("Enter")  # the whole track is not deleted by a key that was pressed too long
    one.until("!document.querySelector('dialog')")
    assert one.box() is not None
    one.press("Shift+N")
    one.click("Delete the track")
    one.until_saved()
    one.click("Export…")
    one.page.select_option("#format", "corrections")
    with one.page.expect_download() as download:
        one.click("Export")
    with zipfile.ZipFile(download.value.path()) as zipped:
        assert zipped.read("corrections.csv").decode().count(",none,") == 12


NUMBER = "Number(document.querySelector('.number').dataset.frame)"
KEYS = [
    (".", f"{NUMBER} === 1"),
    ("x", f"{NUMBER} === 25"),
    ("Shift+X", "document.querySelector('.message')?.textContent.includes('no cut before')"),
    ("Shift+X", "document.querySelectorAll('.message').length === 1"),
    ("a", "window.colocam.marks.state[25] === 1"),
    (",", f"{NUMBER} === 24"),
    ("f", f"{NUMBER} === 25"),
    ("m", f"{NUMBER} === 32"),
    ("b", "window.colocam.marks.state[32] === 3"),
    (".", f"{NUMBER} === 33"),
    ("p", "window.colocam.marks.box[33]?.join() === window.colocam.marks.box[32].join()"),
    ("z", "window.colocam.marks.state[33] === 0"),
    ("Shift+P", "window.colocam.marks.state.slice(33).join() === '3,4,4,4,4,4,4'"),
    ("z", "window.colocam.marks.state[33] === 0"),
    ("e", "document.querySelector('dialog[open] #side-left')"),
    ("7", "document.querySelector('#side-left').value === '7'"),
    ("Enter", "window.colocam.marks.box[33]?.[0] === 7 && !document.querySelector('dialog')"),
    ("z", "window.colocam.marks.state[33] === 0"),
    (",", f"{NUMBER} === 32"),
    ("m", f"{NUMBER} === 35"),
    ("Shift+F", f"{NUMBER} === 32"),
    ("Backspace", "window.colocam.marks.state[32] === 0"),
    ("Shift+A", "window.colocam.marks.state.slice(25).every((one) => one === 1)"),
    ("z", "window.colocam.marks.state[32] === 0"),
    ("y", "window.colocam.marks.state[32] === 1"),
    ("Control+z", "window.colocam.marks.state[32] === 0"),
    ("g", "document.querySelector('dialog[open] #goto')"),
    ("3", "document.querySelector('#goto').value === '3'"),
    ("Enter", f"{NUMBER} === 3"),
    ("c", "document.querySelector('dialog[open] .classes')"),
    ("2", "document.querySelector('.frame-facts').innerText.includes('dog') && !document.querySelector('dialog')"),
    ("h", "document.querySelector('[aria-keyshortcuts=H]').ariaPressed === 'true'"),
    ("o", "document.querySelector('[aria-keyshortcuts=O]').ariaPressed === 'true'"),
    ("v", "document.getElementById('messages').textContent.includes('LayerCAM needs the classifier')"),
    ("d", "[...document.querySelectorAll('.message')].some((one) => one.textContent.includes('no other model'))"),
    ("+", "window.colocam.overlay.zoom === 1.25"),
    ("-", "window.colocam.overlay.zoom === 1"),
    ("+", "window.colocam.overlay.zoom === 1.25"),
    ("0", "window.colocam.overlay.zoom === 1"),
    ("j", f"{NUMBER} === window.colocam.queue[0][0]"),
    ("j", f"{NUMBER} === window.colocam.queue[1][0]"),
    ("k", f"{NUMBER} === window.colocam.queue[0][0]"),
    ("Enter", f"{NUMBER} === window.colocam.queue[0][0] && window.colocam.marks.state.includes(1)"),
    ("i", "window.colocam.objects.selected === 2"),
    ("t", "window.colocam.objects.selected === 1"),
    ("Shift+T", "window.colocam.objects.selected === 2"),
    ("1", "window.colocam.objects.selected === 1"),
    ("q", "window.colocam.objects.alone"),
    ("q", "!window.colocam.objects.alone"),
    ("s", "window.colocam.objects.selected === 3"),
    ("u", "document.querySelector('dialog[open]').innerText.includes('Unite object 3 with')"),
    ("1", "window.colocam.objects.selected === 1 && !document.querySelector('dialog')"),
    ("2", "window.colocam.objects.selected === 2"),
    ("r", "document.querySelector('dialog[open]').innerText.includes('Remove object 2?')"),
    ("Escape", "!document.querySelector('dialog')"),
    ("Space", "window.colocam.player.playing"),
    ("Space", "!window.colocam.player.playing"),
    ("?", "document.querySelector('dialog[open]').innerText.includes('Accept the stretch')"),
    ("Escape", "!document.querySelector('dialog')"),
]


def test_every_key_in_the_list_works_and_every_control_has_a_name(one):
    one.open()
    one.page.evaluate("window.colocam.setRate(0.1)")  # so that the video does not end before it is stopped
    for key, effect in KEYS:
        one.press(key)
        one.until(effect)
    known = one.page.evaluate(
        "import(document.querySelector('[href$=\"/keys.js\"]').href).then((keys) => keys.KEYS.flatMap((one) => one[1]))"
    )
    tested = {key.rpartition("+")[2] or "+" for key, _ in KEYS}
    elsewhere = {" ", "]", "[", "n", "N", "C", "l", "=", "Delete", *"456789"} | {
        key for key in known if key.startswith("Arrow")
    }
    assert set(known) <= tested | elsewhere
    names = one.page.evaluate(
        "[...document.querySelectorAll('button, select, input, [role=slider]')].filter((one) => "
        "!(one.innerText?.trim() || one.ariaLabel || one.labels?.length || one.title)).map((one) => one.outerHTML)"
    )
    assert names == []
    one.page.evaluate("document.getElementById('messages').replaceChildren()")  # they would vanish one by one
    assert_all_reached_by_tab(one.page)
    one.press("l")
    one.page.wait_for_selector(".video.ready")
    assert_all_reached_by_tab(one.page)


def test_what_is_marked_leaves_the_queue_unless_it_is_shown(one):
    one.open()
    for number in (15, 19):  # frame 17 between them is doubtful, so it stays
        one.go(number, "b")
    assert one.objects()[1].state[17] == FOLLOWS
    assert 17 in one.page.evaluate("window.colocam.queue.map(([at]) => at)")
    one.go(17, "a")
    one.until("!window.colocam.queue.some(([at]) => at === 17)")
    second = one.page.evaluate("window.colocam.queue[1][0]")
    one.go(second, "j")  # not reached by the queue, so it begins with the worst
    one.until_frame(one.page.evaluate("window.colocam.queue[0][0]"))
    shown = one.page.locator(".queue li").count()
    one.press("a")
    one.until(f"document.querySelectorAll('.queue li').length === {shown - 1}")
    one.page.locator("#skip").uncheck()
    one.until(f"document.querySelectorAll('.queue li').length === {shown + 1}")  # with frame 17
    one.press("n")  # the box that was clicked does not take the keys
    assert one.box() is None


def test_keys_mean_the_video_after_the_mouse(one):
    one.open()
    area = one.page.locator(".timeline").bounding_box()
    one.page.mouse.click(area["x"] + area["width"] * 10.5 / 40, area["y"] + 40)
    one.until_frame(10)
    one.press("ArrowRight")
    assert one.box() == [16, 6, 36, 30]
    one.click("Outline O")
    one.page.locator(".queue button").first.click()
    one.page.select_option("#rate", "0.1")
    one.press("Space")
    one.until("window.colocam.player.playing")
    one.page.locator("#learn").click()
    one.press("Escape")
    one.until("!document.querySelector('dialog')")
    one.press("Space")
    one.until("!window.colocam.player.playing")
    # The slider tells where the video has stopped.
    one.until(f"document.querySelector('.timeline').ariaValueText.startsWith(`frame ${{{NUMBER}}},`)")


def test_dialogs_say_what_went_wrong_and_remember_the_format(one, tmp_path):
    one.open()
    (tmp_path / "labels.xml").write_text("no labels")
    one.click("More")
    one.click("Import…")
    one.page.select_option("#format", "cvat")
    one.page.set_input_files("#file", tmp_path / "labels.xml")
    one.click("Import")
    one.page.wait_for_selector("dialog[open] output.problem")
    one.press("Escape")
    # What was exported last is offered first; what goes wrong is said in the dialog.
    one.click("Export…")
    assert one.page.input_value("#format") == "coco"
    one.page.select_option("#format", "corrections")
    one.click("Export")
    one.until("document.querySelector('dialog[open] output.problem')?.textContent.includes('nothing to export')")
    one.page.select_option("#format", "yolo")
    with one.page.expect_download():
        one.click("Export")
    one.until("document.querySelector('dialog[open] output.dim').textContent.includes('yolo.zip contains 1 video')")
    one.press("Escape")
    one.click("Export…")
    one.until("document.querySelector('dialog[open] #format')")
    assert one.page.input_value("#format") == "yolo"
    assert one.page.locator(".message").count() == 0


def assert_all_reached_by_tab(page):
    """Every control is reached by the Tab key, and the one that has the focus is outlined."""
    count = page.evaluate(
        "() => { document.activeElement.blur(); const all = [...document.querySelectorAll("
        "'a[href], button, input, select, summary, [tabindex=\"0\"]')].filter((one) => one.tabIndex >= 0 && "
        "!one.disabled && one.getClientRects().length); all.forEach((one, at) => { one.dataset.tab = at; }); "
        "return all.length; }"
    )
    reached = set()
    for _ in range(count + 2):
        page.keyboard.press("Tab")
        at, outline = page.evaluate(
            "() => [document.activeElement.dataset.tab, getComputedStyle(document.activeElement).outlineStyle]"
        )
        if at is not None:
            assert outline != "none", at
            reached.add(at)
    assert len(reached) == count
