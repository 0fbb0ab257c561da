import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo.figures import CLASSES
from colocam.demo.world import Traits, render, true_box
from colocam.types import Box

EASY = Traits(near=False, empty=False, occluded=False, context=True, distractors=1, size=0.45, style="calm")
FRAME = (96, 72)


def shots(tag="fish", traits=EASY, *, seed=0, frames=8, size=FRAME):
    return list(render(tag, traits, np.random.SeedSequence(seed), frames=frames, size=size, fps=12))


STORED = {
    "beetle": ([181, 162, 210, 150, 136, 192, 153, 130, 169, 125, 124, 173], (13, 0, 78, 54)),
    "fish": ([115, 119, 108, 96, 97, 95, 66, 79, 42, 38, 64, 41], (8, 0, 80, 53)),
    "kite": ([184, 163, 187, 157, 144, 209, 162, 140, 165, 116, 115, 159], (19, 0, 69, 63)),
    "rocket": ([87, 103, 58, 51, 71, 54, 66, 79, 30, 35, 60, 41], (25, 0, 74, 53)),
    "snail": ([168, 148, 180, 147, 132, 197, 150, 126, 165, 134, 136, 186], (17, 0, 77, 56)),
    "truck": ([159, 149, 160, 85, 89, 89, 66, 78, 45, 41, 71, 47], (4, 0, 81, 53)),
}
"""Mean RGB of each quarter of the third frame, and the true box."""


@pytest.mark.parametrize("tag", STORED)
def test_the_videos_stay_what_they_are(tag):
    """Numbers of the documentation are measured on them."""
    i = list(CLASSES).index(tag)
    traits = Traits(i % 2 == 0, False, i % 3 == 0, True, distractors=2, size=0.6, style="lively")
    shot = shots(tag, traits, seed=7, frames=3)[-1]
    quarters, box = STORED[tag]
    np.testing.assert_allclose(shot.image.reshape(2, 36, 2, 48, 3).mean((1, 3)).ravel(), quarters, atol=1)
    assert shot.box == box


H, W = 40, 60
NOTHING = np.zeros((H, W), np.float32)


def rectangle(x1, y1, x2, y2, opacity=1.0):
    layer = NOTHING.copy()
    layer[y1:y2, x1:x2] = opacity
    return layer


@given(st.integers(0, 50), st.integers(0, 30), st.integers(6, 40), st.integers(6, 40))
def test_the_box_is_that_of_the_pixels_inside_the_frame(x, y, width, height):
    box = true_box(rectangle(x, y, x + width, y + height), NOTHING, width * height)
    inside = Box(x, y, min(x + width, W), min(y + height, H))
    seen = (inside.x2 - inside.x1) * (inside.y2 - inside.y1)
    assert box == (inside if seen >= max(25, 0.06 * width * height) else None)


@given(st.integers(1, 19))
def test_an_object_mostly_seen_keeps_its_whole_box(columns):
    box = true_box(rectangle(20, 10, 40, 20), rectangle(20, 0, 20 + columns, H), 200)
    if columns < 6:
        assert box == (20, 10, 40, 20)
    elif (20 - columns) * 10 >= 25:
        assert box == (20 + columns, 10, 40, 20)
    else:
        assert box is None
