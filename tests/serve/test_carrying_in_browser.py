"""Carry a box on through a shot by the model's boxes, in Chromium."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from colocam.serve.marks import BOX, FOLLOWS, PREDICTED
from colocam.types import Box
from tests.helpers.served_library import MovingBox, two_shots
from tests.helpers.served_page import served_page

WIDTH, HEIGHT, COUNT, CUT = 128, 96, 60, 30
LOST = slice(12, 15)
CENTERS = np.stack([60 + 34 * np.sin(np.arange(COUNT) / 5), 48 + 20 * np.cos(np.arange(COUNT) / 4)], axis=1)
HALF = np.array([10, 14])
TRUE = np.concatenate([CENTERS - HALF, CENTERS + HALF], axis=1)
"""(60, 4) the object swings: no straight line between two frames says where it is."""


class Displaced(MovingBox):
    """A model whose box is beside the object, by shot; in some frames it is lost."""

    card = SimpleNamespace(size=32, presence=None)

    def stream(self, frames, **how):
        for frame, found in super().stream(frames, **how):
            dx, dy = (12, -3) if frame.index < CUT else (-11, 2)
            box, track = Box(*(TRUE[frame.index] + np.array([dx, dy] * 2))), int(frame.index >= CUT)
            if LOST.start <= frame.index < LOST.stop:
                box, track = Box(0, 0, 9, 9), 2
            score = 0.1 if frame.index % 5 == 3 else 0.9
            yield frame, replace(found, box=box, score=score, track=track, presence=None, margin=None, mask=None)


@pytest.fixture
def swinging(page, make_video, tmp_path):
    """The page and a video of two shots, whose object the model sees beside its place."""
    video = two_shots(make_video, tmp_path / "video.mp4", (HEIGHT, WIDTH), (CUT, COUNT - CUT))
    with served_page(page, tmp_path / "page", [video], model=Displaced) as opened:
        assert np.flatnonzero(opened.library.video(opened.video).index.cuts).tolist() == [CUT]
        opened.open()
        yield opened


def draw(opened, frame, box):
    opened.go(frame)
    opened.page.evaluate("box => window.colocam.setBox(box)", list(map(float, box)))


def test_a_box_is_carried_on_as_the_object_moves(swinging):
    draw(swinging, 4, TRUE[4])
    swinging.press("Shift+P")
    marks = swinging.objects()[1]
    assert marks.state.tolist() == [PREDICTED] * 4 + [BOX] + [FOLLOWS] * (CUT - 5) + [PREDICTED] * (COUNT - CUT)
    expected = TRUE[4:CUT].copy()
    expected[LOST.start - 4 : LOST.stop - 4] = TRUE[LOST.start - 1]  # no other track leads it away
    np.testing.assert_allclose(marks.box[4:CUT], expected, atol=0.011)
    # What is marked ends the stretch and stays; what was carried on stays, too, between two marked frames.
    draw(swinging, 20, (1, 2, 30, 40))
    np.testing.assert_allclose(swinging.objects()[1].box[5:20], expected[1:16], atol=0.011)
    swinging.press("Shift+P")
    marks = swinging.objects()[1]
    np.testing.assert_allclose(marks.box[5:20], expected[1:16], atol=0.011)
    assert marks.state[19:22].tolist() == [FOLLOWS, BOX, FOLLOWS]
    swinging.press("z", "z", "z")
    np.testing.assert_allclose(swinging.objects()[1].box[4], TRUE[4], atol=0.011)


def test_a_box_that_is_carried_on_stays_in_the_frame(swinging):
    box = TRUE[4] - np.array([40, 30, 0, 0])
    draw(swinging, 4, box)
    swinging.press("Shift+P")
    drawn = swinging.objects()[1].box[4]
    shift = CENTERS[15:CUT] - CENTERS[4]
    size = drawn[2:] - drawn[:2]
    corner = np.clip(drawn[:2] + shift, 0, (WIDTH, HEIGHT) - size)
    assert (corner != drawn[:2] + shift).any()
    np.testing.assert_allclose(swinging.objects()[1].box[15:CUT], np.hstack([corner, corner + size]), atol=0.011)


def test_a_box_stays_where_the_model_looks_at_something_else(swinging):
    draw(swinging, 0, (0, 70, 12, 90))
    swinging.press("Shift+P")
    np.testing.assert_array_equal(swinging.objects()[1].box[:CUT], [[0, 70, 12, 90]] * CUT)
