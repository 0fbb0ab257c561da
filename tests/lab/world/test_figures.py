import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo.figures import (
    BODY,
    CLASSES,
    CONTEXTS,
    Figure,
    Part,
    Patch,
    distractor,
    ellipse,
    limb,
    polygon,
    smooth,
    star,
)

SQUARE = polygon((-1, -1), (1, -1), (1, 1), (-1, 1))


def area(outline):
    x, y = outline.T
    return 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def rotated(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@given(st.tuples(*[st.floats(-2, 2)] * 2), st.floats(0, 40), st.floats(0, 0.9), st.floats(0, 3), st.floats(0, 10))
def test_a_part_moves_about_its_pivot(pivot, swing, squeeze, rate, seconds):
    part = Part((Patch(SQUARE),), pivot=pivot, swing=swing, squeeze=squeeze, rate=rate)
    matrix = part.pose(seconds)
    assert matrix @ [*pivot, 1] == pytest.approx([*pivot, 1], abs=1e-9)
    assert 1 - squeeze - 1e-9 <= np.linalg.det(matrix) <= 1 + 1e-9


def test_swing_reaches_its_angle_and_spin_turns_fully():
    swinging = Part((Patch(SQUARE),), swing=30, rate=1)
    assert swinging.pose(0.25)[:2, :2] == pytest.approx(rotated(np.radians(30)))
    assert swinging.pose(0.75)[:2, :2] == pytest.approx(rotated(np.radians(-30)))
    wheel = Part((Patch(SQUARE),), spin=0.5)
    assert wheel.pose(1.0)[:2, :2] == pytest.approx(-np.eye(2))
    assert wheel.pose(2.0)[:2, :2] == pytest.approx(np.eye(2))


def test_squeeze_is_along_y():
    assert np.diag(Part((Patch(SQUARE),), squeeze=0.5, rate=1).pose(0.25)) == pytest.approx([1, 0.5, 1])


def test_a_figure_knows_its_size_and_middle():
    figure = Figure((Part((Patch(SQUARE),)), Part((Patch(polygon((1, 0), (7, 0), (7, 1))),))))
    assert figure.centre.tolist() == [3, 0]
    assert figure.unit == pytest.approx(np.sqrt(8 * 2))
    assert figure.reach * figure.unit >= np.hypot(4, 1)


@given(st.floats(0.1, 3), st.floats(0.1, 3))
def test_an_ellipse_has_its_area(rx, ry):
    assert area(ellipse(1, 2, rx, ry)) == pytest.approx(np.pi * rx * ry, rel=0.01)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=3, max_size=9))
def test_a_smooth_outline_passes_through_its_points(points):
    outline = smooth(*points)
    for point in points:
        assert np.abs(outline - point).sum(1).min() < 1e-9


def test_a_limb_has_its_width():
    bar = limb([(0, 0), (5, 0), (10, 0)], 2.0, 1.0)
    assert area(bar) == pytest.approx(15)
    assert area(limb([(0, 0), (5, 0), (10, 0)], 2.0)) == pytest.approx(20)


def test_a_star_has_its_rays():
    radius = np.linalg.norm(star(5, 0.4), axis=1)
    assert radius == pytest.approx([1.0, 0.4] * 5)


def points(figure):
    return np.concatenate([part.points for part in figure.parts])


@pytest.mark.parametrize("tag", CLASSES)
def test_a_class_keeps_its_shape_but_for_a_little(tag):
    first, *others = (CLASSES[tag](np.random.default_rng(seed)) for seed in (0, 0, 1, 2))
    assert np.array_equal(points(first), points(others[0]))
    for other in others:
        difference = np.linalg.norm(points(first) - points(other), axis=1) / first.unit
        assert difference.max() < 0.2


def test_every_class_has_a_context_of_its_own():
    assert list(CONTEXTS) == list(CLASSES)
    assert len(set(CONTEXTS.values())) == len(CLASSES) >= 5


def test_the_largest_patch_of_every_class_is_softly_textured_in_the_base_colour():
    for build in CLASSES.values():
        patches = [patch for part in build(np.random.default_rng(0)).parts for patch in part.patches]
        body, *others = sorted(patches, key=lambda patch: -area(patch.outline))
        assert body.base == 0
        assert body.contrast <= BODY
        crisp = [patch for patch in others if patch.base and (patch.pattern is None or patch.contrast == 1)]
        assert crisp
        assert max(area(patch.outline) for patch in crisp) < 0.6 * area(body.outline)


def test_distractors_are_many():
    outlines = {len(distractor(np.random.default_rng(seed)).parts[0].patches[0].outline) for seed in range(60)}
    assert len(outlines) >= 6
