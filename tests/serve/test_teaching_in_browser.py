"""Teach in Chromium: layers, another model beside, what corrections changed, and switching between models."""

import shutil
import sys

import pytest

from colocam.config.card import parse_card
from colocam.serve import lessons
from tests.helpers.served_library import LESSON, MovingBox, gray_video, model_file
from tests.helpers.served_page import served_page


@pytest.fixture
def taught(page, make_video, stored_run, tmp_path, monkeypatch):
    """A server whose lessons write a model with boxes 12 pixels further right."""
    monkeypatch.setattr(lessons, "COMMAND", (sys.executable, "-c", LESSON))
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.json", "model.safetensors"):
        shutil.copyfile(stored_run / name, run / name)
    card = parse_card((run / "model.json").read_text(), "model.json")
    video = gray_video(make_video, tmp_path / "video.mp4", range(40, 220, 6), width=80)

    def load(path):
        return MovingBox({"quick": 11.0, "run": 17.0}[path.name] if "lessons" in path.parts else 5.0)

    other = model_file(tmp_path / "other.onnx")
    quick = lambda _run: lambda said: card.model_copy(update={"threshold": 0.01 * len(said)})  # noqa: E731
    with served_page(page, tmp_path / "page", [video], load=load, run=run, quick=quick, beside=[other]) as opened:
        yield opened


def test_layers_and_another_model(taught):
    taught.open()
    taught.until_box(5, 6, 25, 30)
    taught.press("o")
    taught.until("window.colocam.seen().outline?.[0].length >= 8")
    assert taught.page.evaluate("window.colocam.seen().heat") is None
    taught.press("h")
    taught.until("window.colocam.seen().heat")
    taught.press("h")
    assert taught.page.evaluate("window.colocam.seen().heat") is None
    taught.press("d")
    taught.until("window.colocam.seen().other?.join() === '5,6,25,30'")
    assert taught.page.evaluate("window.colocam.seen().otherLabel") == "other.onnx: cat 90 %  box 0.90"
    taught.press("d", "d")
    taught.until("window.colocam.seen().kind === 'beside'")
    taught.until("window.colocam.seen().kind === 'predicted'")
    # What is accepted is what is shown: here the box of the other model.
    taught.page.evaluate(
        "() => { const { comparison } = window.colocam; comparison.flipped = true;"
        " comparison.other.results.box[0] = [9, 9, 19, 19]; window.colocam.act('accept'); }"
    )
    taught.until("window.colocam.marks.box[0]?.join() === '9,9,19,19'")
    taught.press("d")
    taught.until("window.colocam.comparison.mode === 'off'")


def test_a_lesson_shows_its_progress_and_can_be_cancelled(taught, monkeypatch):
    says = "print('frames: 9/9 in 1 s'); print('decoder: 3/12 in 2 s, 1.5 steps/s, 6 s left  loss 0.1', flush=True); "
    monkeypatch.setattr(lessons, "COMMAND", (sys.executable, "-c", f"{says}import time; time.sleep(600)"))
    taught.open()
    taught.press("a")
    taught.until_saved()
    taught.click("Learn…")
    taught.click("Learn from all corrections")
    taught.until("document.querySelector('.running progress')?.value === 0.25")
    assert "decoder: 3 of 12, about 6 s left" in taught.dialog()
    taught.click("Cancel the lesson")
    taught.until("document.querySelector('dialog').innerText.includes('The lesson was cancelled')")
    assert taught.page.locator(".running").is_hidden()
    assert taught.page.get_by_role("button", name="Learn from all corrections").is_enabled()


PANES = """
() => [...document.querySelectorAll(".pane")].map((pane) => {
  const [heat, overlay] = [".heat", ".overlay"].map((name) => pane.querySelector(name));
  const images = [".still", ".copy", "video"].map((name) => pane.querySelector(name));
  const image = images.find((one) => one?.checkVisibility());  // the still hides the video beneath it
  const context = document.createElement("canvas").getContext("2d");
  context.drawImage(image, 0, 0, 1, 1);
  const { left, top, width } = overlay.getBoundingClientRect();
  const room = pane.querySelector(".room").getBoundingClientRect();
  return {
    name: pane.querySelector("figcaption").textContent,
    number: Math.round((context.getImageData(0, 0, 1, 1).data[0] - 40) / 6),
    heat: !heat.hidden && heat.getContext("2d").getImageData(20, 20, 1, 1).data.join(),
    place: [left - room.left, top - room.top, width].map(Math.round),
    inside: room.left >= 0 && room.right <= innerWidth,
  };
})
"""


def test_two_models_side_by_side_show_the_same_frame(taught):
    taught.open()
    taught.press("h")
    taught.until("window.colocam.seen().heat")
    taught.press("d")
    taught.until("window.colocam.seen().other")
    taught.press("d")
    taught.until("document.querySelectorAll('.pane .heat:not([hidden])').length === 2")

    def panes(number):
        own, other = taught.page.evaluate(PANES)
        assert [own.pop("name"), other.pop("name")] == ["run", "other.onnx"]
        assert own == other
        assert own["number"] == number
        assert own["inside"]
        assert own["heat"]
        return own["place"]

    for frame in (12, 29, 3):  # paused: of the reader, or of the proxy until that has come
        taught.go(frame)
        panes(frame)
    shown = taught.play(f"() => ({PANES})().map((one) => one.number)")
    assert len(shown) >= 2
    assert all(at == own == other for at, (own, other) in shown), shown
    # The wheel over one pane zooms both, and both keep the same part in sight.
    taught.go(5)
    before = panes(5)
    area = taught.page.locator(".pane:last-child .room").bounding_box()
    taught.page.mouse.move(area["x"] + area["width"] * 0.7, area["y"] + area["height"] / 2)
    taught.page.mouse.wheel(0, -100)
    taught.until("window.colocam.overlay.zoom === 1.25")
    assert panes(5) != before
    for width in (1920, 1280):
        taught.page.set_viewport_size({"width": width, "height": 800})
        taught.until(f"document.querySelector('.screen').clientWidth > {0.68 * width}")
        panes(5)
    taught.press("d", "d")
    taught.until("document.querySelectorAll('.pane').length === 1")
    assert taught.page.locator("figcaption:visible").count() == 0


def test_teach_see_what_changed_switch_and_switch_back(taught):
    taught.open()
    taught.until_box(5, 6, 25, 30)
    taught.press("a")
    taught.until_saved()
    taught.click("Learn…")
    taught.click("Learn from all corrections")
    taught.press("Escape")
    taught.until("document.getElementById('messages').textContent.includes('The lesson is done.')")
    taught.click("Learn…")
    taught.page.wait_for_selector(".moved canvas")
    told = taught.dialog()
    assert "Agreement with 7 held-out corrections" in told
    assert "0.500" in told
    assert "0.750" in told
    assert taught.page.locator(".moved canvas").first.get_attribute("aria-label").startswith("before: box")
    taught.click("Use the new model")
    taught.page.get_by_role("button", name="Back to the first model").wait_for()
    taught.press("Escape")
    taught.until("window.colocam.video.results.box[1][0] === 18 && !document.querySelector('dialog')")
    assert taught.box() == [5, 6, 25, 30]  # what was accepted stays
    assert [float(row["x1"]) for row in taught.server.rows()[:2]] == [5, 18]
    taught.press(".")
    taught.until_box(18, 6, 38, 30)
    # Every ten corrections, thresholds follow at once.
    taught.page.evaluate(
        "() => { localStorage.setItem('colocam-learn-often', 'yes'); localStorage.setItem('colocam-unlearned', '9'); }"
    )
    taught.press("a")
    taught.until("window.colocam.video.results.box[2][0] === 13")
    assert taught.library.active.title == "thresholds 2"
    assert taught.box() == [18, 6, 38, 30]
    taught.click("Learn…")
    taught.click("Back to the first model")
    taught.until("window.colocam.video.results.box[2][0] === 7")
