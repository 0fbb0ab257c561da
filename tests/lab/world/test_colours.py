import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo.textures import draw_palette, object_colours, oklch, ramp


@pytest.mark.parametrize(
    ("lch", "rgb"),
    [  # CSS Color 4 gives these for the named colours
        ((1.0, 0.0, 0.0), (255, 255, 255)),
        ((0.0, 0.0, 0.0), (0, 0, 0)),
        ((0.62796, 0.25768, 29.234), (255, 0, 0)),
        ((0.86644, 0.29483, 142.495), (0, 255, 0)),
        ((0.45201, 0.31321, 264.052), (0, 0, 255)),
        ((0.59987, 0.0, 0.0), (128, 128, 128)),
    ],
)
def test_oklch_gives_the_published_values(lch, rgb):
    assert oklch(*lch) * 255 == pytest.approx(np.array(rgb), abs=0.6)


@given(st.floats(0, 1), st.floats(0, 0.4), st.floats(-720, 720))
def test_colours_out_of_the_gamut_are_clipped(lightness, chroma, hue):
    colour = oklch(lightness, chroma, hue)
    assert np.all((colour >= 0) & (colour <= 1))


@given(st.integers(0, 2**32))
def test_a_thing_has_a_light_and_a_dark_colour_beside_its_base(seed):
    luma = object_colours(np.random.default_rng(seed), 100.0) @ [0.2126, 0.7152, 0.0722]
    assert luma[2] < luma[0] < luma[1]
    assert luma[1] - luma[2] > 0.4


def test_backgrounds_are_far_from_the_object_unless_near():
    def distance(near):
        palettes = [draw_palette(np.random.default_rng(seed), near=near) for seed in range(80)]
        return np.array([np.linalg.norm(p.background - p.object[0], axis=1).min() for p in palettes]) * 255

    far, near = distance(near=False), distance(near=True)
    assert np.median(near) < 20  # within about one σ of the colour kernel
    assert np.median(far) > 60
    assert np.quantile(far, 0.05) > np.median(near)


def test_hues_are_spread_over_the_circle():
    bases = np.array([draw_palette(np.random.default_rng(seed), near=False).object[0] for seed in range(120)])
    assert np.bincount(bases.argmax(1), minlength=3).min() > 24


def test_ramp_interpolates_between_its_colours_and_holds_its_ends():
    colours = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], np.float32)
    value = np.array([[-1, 0, 0.25], [0.5, 0.75, 2]], np.float32)
    expected = [[[0, 0, 0], [0, 0, 0], [0.5, 0, 0]], [[1, 0, 0], [1, 0.5, 0], [1, 1, 0]]]
    assert ramp(colours, value).tolist() == expected
