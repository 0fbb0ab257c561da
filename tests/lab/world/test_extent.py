import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo.world import true_box
from colocam.types import Box

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


def test_a_hole_in_the_middle_leaves_the_visible_sides():
    assert true_box(rectangle(20, 10, 40, 20), rectangle(23, 0, 37, H), 200) == (20, 10, 40, 20)


def test_faint_things_neither_count_nor_hide():
    solid, faint = rectangle(20, 10, 40, 20), rectangle(10, 5, 50, 25, 0.3)
    assert true_box(np.maximum(solid, faint), faint, 200) == (20, 10, 40, 20)


def test_too_little_to_see_is_no_object():
    assert true_box(NOTHING, NOTHING, 200) is None
    assert true_box(rectangle(0, 0, 6, 4), NOTHING, 100) is None  # 24 pixels
    assert true_box(rectangle(0, 0, 5, 5), NOTHING, 100) == (0, 0, 5, 5)
    assert true_box(rectangle(0, 0, 10, 10), NOTHING, 2000) is None  # 5 %
    assert true_box(rectangle(0, 0, 13, 10), NOTHING, 2000) == (0, 0, 13, 10)
