import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo import textures

PERIODIC = {  # how far along u, and along v, each pattern repeats, in periods
    textures.stripes: (1, 0),
    textures.checks: (1, 1),
    textures.dots: (1, 2 * 0.866),
    textures.scales: (1, 1),
    textures.zigzag: (2, 1),
    textures.waves: (2.3, 1),
    textures.crosses: (1, 1),
    textures.plaid: (1, 1),
    textures.bricks: (2, 2),
    textures.lattice: (1, 1),
    textures.dashes: (1.5, 2),
}


def grid(side: float, n: int = 200):
    axis = ((np.arange(n) + 0.5) / n - 0.5).astype(np.float32) * side
    return np.meshgrid(axis, axis)


@pytest.mark.parametrize("pattern", [*PERIODIC, textures.reeds, textures.puffs, textures.rings, textures.spiral])
def test_patterns_stay_between_nothing_and_all_and_have_both(pattern):
    values = pattern(0.37)(*grid(2.0))
    assert values.dtype == np.float32
    assert values.min() == 0
    assert values.max() == 1
    assert 0.02 < values.mean() < 0.98


@pytest.mark.parametrize("pattern", PERIODIC)
@given(period=st.floats(0.1, 3), times=st.integers(1, 4))
def test_patterns_repeat_after_their_period(pattern, period, times):
    u, v = (a.astype(np.float64) for a in grid(1.97 * period, 60))  # no place lies on an edge of a pattern
    along, down = (times * share * period for share in PERIODIC[pattern])
    here, there = pattern(period)(u, v), pattern(period)(u + along, v + down)
    assert np.mean(here != there) < 0.02  # rounding may move an edge


def test_stripes_turn_by_their_angle():
    u, v = grid(1.0)
    upright = textures.stripes(0.25)(u, v)
    assert np.all(upright == upright[:1])
    lying = textures.stripes(0.25, 90)(u, v)
    assert np.all(lying == lying[:, :1])
    assert upright[0, np.abs(u[0] - 0.06).argmin()] == 1
    assert upright[0, np.abs(u[0] - 0.19).argmin()] == 0


@given(duty=st.floats(0.1, 0.9))
def test_duty_is_the_share_of_accent(duty):
    assert textures.stripes(0.1, duty=duty)(*grid(1.0, 400)).mean() == pytest.approx(duty, abs=0.03)


def test_checks_alternate():
    u, v = np.array([[0.1, 0.6], [0.1, 0.6]], np.float32), np.array([[0.1, 0.1], [0.6, 0.6]], np.float32)
    assert textures.checks(1.0)(u, v).tolist() == [[0, 1], [1, 0]]


def test_dots_cover_the_area_of_their_discs():
    assert textures.dots(0.1, 0.3)(*grid(2.0, 800)).mean() == pytest.approx(np.pi * 0.3**2 / 0.866, rel=0.03)


def test_rings_and_spokes_depend_on_radius_and_angle_alone():
    centre = (0.3, -0.2)
    angle = np.linspace(0.01, 2 * np.pi - 0.01, 50, dtype=np.float32)[None]
    radius = np.linspace(0.05, 0.6, 40, dtype=np.float32)[:, None]
    u, v = (centre[0] + radius * np.cos(angle)).astype("f"), (centre[1] + radius * np.sin(angle)).astype("f")
    rings = textures.rings(0.173, centre)(u, v)
    assert np.mean(rings != rings[:, :1]) < 0.02
    assert len(np.unique(rings[:, 0])) == 2
    spokes = textures.spokes(3, centre)(u, v)
    assert np.mean(spokes != spokes[:1]) < 0.02
    assert np.count_nonzero(np.diff(spokes[0])) == 5  # three sectors: six edges, one of them at angle zero


def test_spiral_moves_outward_by_its_pitch_in_a_turn():
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    on_the_arm = 0.2 * (2 + 0.2 - angle / (2 * np.pi))  # where radius/pitch + turns is a whole number + 0.2
    u, v = (on_the_arm * np.cos(angle)).astype("f"), (on_the_arm * np.sin(angle)).astype("f")
    assert textures.spiral(0.2)(u[None], v[None]).all()


def test_noise_is_smooth_spans_its_range_and_comes_from_the_generator():
    noise = textures.fractal_noise(np.random.default_rng(1), 90, 130, cell=30)
    assert noise.shape == (90, 130)
    assert noise.min() == 0
    assert noise.max() == 1
    assert np.abs(np.diff(noise, axis=1)).mean() < 0.05
    assert np.array_equal(noise, textures.fractal_noise(np.random.default_rng(1), 90, 130, cell=30))
    assert not np.array_equal(noise, textures.fractal_noise(np.random.default_rng(2), 90, 130, cell=30))


def test_more_octaves_make_finer_noise():
    coarse, fine = (
        textures.fractal_noise(np.random.default_rng(0), 64, 64, cell=32, octaves=n, gain=0.7) for n in (1, 5)
    )
    assert np.abs(np.diff(fine)).mean() > 2 * np.abs(np.diff(coarse)).mean()
