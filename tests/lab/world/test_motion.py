import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.demo.motion import STYLES, Camera, Style, knots_needed, leave, lighting, pan, roam, spline, wobble

FRAME = (192, 144)
TIME = np.arange(48) / 12


@given(st.integers(2, 8), st.floats(0.1, 4), st.integers(0, 1000))
def test_a_curve_passes_through_its_knots_and_is_smooth(count, interval, seed):
    knots = np.random.default_rng(seed).normal(0, 1, (count, 2))
    assert spline(knots, interval, np.arange(count) * interval) == pytest.approx(knots, abs=1e-9)
    fine = spline(knots, interval, np.linspace(0, (count - 1) * interval, 1000))
    assert np.abs(np.diff(fine, 2, axis=0)).max() < 0.02


def test_a_curve_through_a_line_is_the_line():
    knots = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert spline(knots, 0.5, TIME / 3)[:, 0] == pytest.approx(np.minimum(2 * TIME / 3, 3))


@given(st.floats(0.05, 9), st.floats(0.1, 3))
def test_knots_reach_the_end(duration, interval):
    count = knots_needed(np.array([0.0, duration]), interval)
    assert count >= 2
    assert (count - 1) * interval >= duration - 1e-9


def test_a_wobble_has_its_spread():
    values = [wobble(np.random.default_rng(seed), np.zeros(1), interval=1.0, spread=3.0)[0] for seed in range(600)]
    assert np.mean(values) == pytest.approx(0, abs=0.5)
    assert np.std(values) == pytest.approx(3, rel=0.1)


def test_shares_of_styles_add_up():
    assert sum(style.share for style in STYLES.values()) == pytest.approx(1)


@pytest.mark.parametrize("name", STYLES)
def test_paths_keep_their_size_and_mostly_the_frame(name):
    paths = [
        roam(np.random.default_rng(seed), TIME, FRAME, size=50, style=STYLES[name], limits=(40, 60))
        for seed in range(60)
    ]
    sizes, places = np.stack([p.size for p in paths]), np.stack([p.position for p in paths])
    assert sizes.min() >= 40
    assert sizes.max() <= 60
    inside = np.all((places > 0) & (places < FRAME), -1)
    outside = np.mean(np.any((places < -25) | (places > np.array(FRAME) + 25), -1))
    if STYLES[name].crossing:
        assert 0.05 < outside < 0.5
    else:
        assert inside.mean() > 0.95
        assert outside == 0
    assert np.degrees(np.std([p.tilt for p in paths])) == pytest.approx(15, rel=0.3)


def test_fast_is_faster_than_calm():
    def speed(name):
        runs = (
            roam(np.random.default_rng(s), TIME, FRAME, size=40, style=STYLES[name], limits=(30, 50)) for s in range(40)
        )
        return np.median([np.linalg.norm(np.diff(run.position, axis=0), axis=1).mean() * 12 for run in runs])

    assert speed("fast") > 1.8 * speed("lively") > 1.8 * speed("calm")


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(30, 100))
def test_who_leaves_is_away_for_a_fifth_to_two_fifths(seed, size):
    rng = np.random.default_rng(seed)
    path = roam(rng, TIME, FRAME, size=size, style=Style(1.0, 2.0), limits=(20, 110))
    gone = leave(rng, path, TIME, FRAME, reach=0.8)
    outside = np.any(
        (gone.position + 0.8 * gone.size[:, None] <= 1e-6)
        | (gone.position - 0.8 * gone.size[:, None] >= np.array(FRAME) - 1e-6),
        axis=1,
    )
    away = np.flatnonzero(outside)
    assert 0.2 * 47 - 2 <= len(away) <= 0.4 * 47 + 2
    assert np.array_equal(away, np.arange(away[0], away[-1] + 1))
    assert np.abs(gone.position - path.position).sum(1)[~outside].min() == 0 or len(away) + 10 > 48


def test_the_camera_maps_the_frame_into_the_canvas():
    canvas = (360, 230)
    corners = np.array([[0, 0, 1], [191, 0, 1], [0, 143, 1], [191, 143, 1]]).T
    travelled = []
    for seed in range(30):
        camera = pan(np.random.default_rng(seed), TIME, FRAME, canvas)
        places = np.stack([camera.matrix(index) @ corners for index in range(48)])
        assert places.min() > -12
        assert (places.max((0, 2)) < np.array(canvas) + 12).all()
        travelled.append(np.abs(np.diff(places.mean(2), axis=0)).sum())
    assert np.median(travelled) > 50


def test_zoom_roll_and_parallax_of_a_known_camera():
    camera = Camera(np.array([[100.0, 80], [140, 80]]), np.array([1.0, 2.0]), np.array([0.0, np.pi / 2]), (3, 3))
    assert camera.matrix(0) @ [1, 1, 1] == pytest.approx([100, 80])
    assert camera.matrix(0) @ [2, 1, 1] == pytest.approx([101, 80])
    assert camera.matrix(1) @ [2, 1, 1] == pytest.approx([140, 80.5])
    assert camera.matrix(0, 1.5) @ [1, 1, 1] == pytest.approx([90, 80])
    assert camera.matrix(1, 1.5) @ [1, 1, 1] == pytest.approx([150, 80])


def test_light_differs_by_video_changes_over_time_and_darkens_corners():
    lights = [lighting(np.random.default_rng(seed), TIME, FRAME) for seed in range(40)]
    means = np.array([light.gain.mean() for light in lights])
    assert means.std() > 0.05
    assert np.median([np.ptp(light.gain[:, 1]) for light in lights]) > 0.1
    assert all(light.gain.min() > 0.3 and light.gain.max() < 3 for light in lights)
    for light in lights:
        corners = light.shade[:, [0, 0, -1, -1], [0, -1, 0, -1]].mean()
        assert 0.5 < corners <= light.shade[:, 72, 96].mean() + 0.01
