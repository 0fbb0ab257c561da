import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.demo.figures import CLASSES, Figure, Part, Patch, ellipse, polygon
from colocam.demo.painting import lay, make_actor
from colocam.demo.textures import stripes

COLOURS = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], np.float32)
ARROW = Figure((Part((Patch(polygon((-1, -0.4), (0.4, -0.4), (1.2, 0.5), (-1, 0.5))),)),))
DISC = Figure((Part((Patch(ellipse(0, 0, 1, 1)),)),))


def canvas(width=120, height=90):
    return np.zeros((height, width, 4), np.float32)


@settings(max_examples=40)
@given(
    st.floats(45, 75),
    st.floats(35, 55),
    st.floats(12, 40),
    st.floats(-3, 3),
    st.booleans(),
)
def test_the_picture_lies_where_its_outline_does(x, y, size, tilt, mirrored):
    layer = canvas()
    make_actor(ARROW, COLOURS, size, mirrored=mirrored).draw(layer, np.array([x, y]), size, tilt, 0.0)
    outline = (ARROW.parts[0].points - ARROW.centre) * size / ARROW.unit * ([-1, 1] if mirrored else [1, 1])
    outline = outline @ np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]]) + [x, y]
    rows, columns = np.nonzero(layer[..., 3] > 0.5)
    found = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
    # A sharp corner covers its last pixel by less than half, so the box may end a little inside.
    assert found == pytest.approx(np.concatenate([outline.min(0), outline.max(0)]), abs=2.5)


def test_places_are_finer_than_pixels():
    disc = make_actor(DISC, COLOURS, 20)
    for shift in (0.0, 0.25, 0.5, 0.75):
        layer = canvas()
        disc.draw(layer, np.array([50 + shift, 40 - shift]), 20, 0.0, 0.0)
        y, x = np.mgrid[:90, :120] + 0.5
        weight = layer[..., 3] / layer[..., 3].sum()
        assert (x * weight).sum() == pytest.approx(50 + shift, abs=0.1)
        assert (y * weight).sum() == pytest.approx(40 - shift, abs=0.1)


@given(st.floats(20, 40))
@settings(max_examples=20)
def test_the_area_is_that_of_the_outline(size):
    disc = make_actor(DISC, COLOURS, size)
    assert disc.area(size) == pytest.approx(np.pi / 4 * size**2, rel=0.04)
    layer = canvas()
    disc.draw(layer, np.array([60.0, 45.0]), size, 0.4, 0.0)
    assert layer[..., 3].sum() == pytest.approx(disc.area(size), rel=0.05)


def test_patterns_and_colours_show():
    layer = canvas()
    square = Figure((Part((Patch(polygon((-1, -1), (1, -1), (1, 1), (-1, 1)), stripes(1.0), contrast=1.0),)),))
    make_actor(square, COLOURS, 40).draw(layer, np.array([60.0, 45.0]), 40, 0.0, 0.0)
    red, green, blue, alpha = layer[45, 60 - 15], layer[45, 60 - 5], layer[45, 60 + 5], layer[45, 60 + 15]
    assert [pixel[:3].argmax() for pixel in (red, green, blue, alpha)] == [1, 0, 1, 0]
    assert np.all(layer[..., :3].max(-1) <= layer[..., 3] + 1e-5)


def test_nothing_is_drawn_outside_the_frame_and_parts_are_cut_at_its_edge():
    disc = make_actor(DISC, COLOURS, 20)
    away, half = canvas(), canvas()
    disc.draw(away, np.array([-30.0, 45.0]), 20, 0.0, 0.0)
    disc.draw(away, np.array([60.0, 140.0]), 20, 0.0, 0.0)
    assert not away.any()
    disc.draw(half, np.array([0.0, 45.0]), 20, 0.0, 0.0)
    assert half[..., 3].sum() == pytest.approx(disc.area(20) / 2, rel=0.05)


def test_a_mirrored_figure_is_the_mirror_image():
    plain, mirrored = canvas(120), canvas(120)
    for layer, flag in ((plain, False), (mirrored, True)):
        make_actor(CLASSES["truck"](np.random.default_rng(0)), COLOURS, 40, mirrored=flag).draw(
            layer, np.array([60.0, 45.0]), 40, 0.0, 0.0
        )
    assert np.abs(plain - mirrored[:, ::-1])[..., 3].mean() < 0.003
    assert np.abs(plain - mirrored)[..., 3].mean() > 0.01


@pytest.mark.parametrize("tag", CLASSES)
def test_objects_move_their_limbs_within_their_reach(tag):
    actor = make_actor(CLASSES[tag](np.random.default_rng(0)), COLOURS, 40)
    layers = [canvas(), canvas()]
    for layer, seconds in zip(layers, (0.0, 0.4), strict=True):
        actor.draw(layer, np.array([60.0, 45.0]), 40, 0.0, seconds)
    assert np.abs(layers[0] - layers[1]).max() > 0.3
    y, x = np.mgrid[:90, :120] + 0.5
    for layer in layers:
        assert not layer[np.hypot(x - 60, y - 45) > actor.figure.reach * 40].any()


def test_lay_is_the_over_operator():
    rng = np.random.default_rng(0)
    below, above = rng.random((2, 5, 6, 4)).astype(np.float32)
    above[..., :3] *= above[..., 3:]
    expected = np.array(
        [[a + b * (1 - a[3]) for a, b in zip(*rows, strict=True)] for rows in zip(above, below, strict=True)]
    )
    lay(below, above)
    assert below == pytest.approx(expected, abs=1e-6)
