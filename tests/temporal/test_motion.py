"""Motion, on scenes whose motion is known: a textured wall, a camera that moves over it, and an object that moves."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import cv2
import numpy as np
import pytest

from colocam.temporal.cuts import WINDOW
from colocam.temporal.motion import EVERY, SIDE, Moved, WeighByPast, WeighWindows, residual_motion, weigh

WIDE = 224
"""Side of the pictures that the gray frames are made of, and of the maps."""
UNIT = WIDE / SIDE
"""Pixels of a picture for one of its gray frame."""
OBJECT = slice(80, 136)
"""Rows of the object, which has as many columns."""
LEFT = 40
"""First column of the object in the first frame."""
LAMP = slice(150, 200)
"""Rows and columns of a place on the wall that has heat, too."""


def serial(work, items):
    return [work(one) for one in items]


def texture(seed, height=WIDE, width=WIDE):
    noise = np.random.default_rng(seed).normal(0, 1, (height, width)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 3)
    return cv2.normalize(smooth, None, 20, 235, cv2.NORM_MINMAX).astype(np.uint8)


def smaller(picture):
    return cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


def scene(frames, *, camera=(-2.0, 1.0), speed=3, seed=0):
    """Gray frames and maps: the wall moves by ``camera`` a frame, the object by ``speed`` to the right."""
    wall, thing = texture(seed, 600, 600), texture(seed + 1, 56, 56)
    grays, levels = [], []
    for at in range(frames):
        shift = np.float32([[1, 0, at * camera[0] - 150], [0, 1, at * camera[1] - 150]])
        picture = cv2.warpAffine(wall, shift, (WIDE, WIDE))
        left = LEFT + speed * at
        picture[OBJECT, left : left + 56] = thing
        level = np.full((WIDE, WIDE), 5, np.uint8)
        level[OBJECT, left : left + 56] = 180
        level[LAMP, LAMP] = 200
        grays.append(smaller(picture))
        levels.append(level)
    return np.stack(grays), np.stack(levels)


def no_cuts(count):
    return np.zeros(count, bool)


@pytest.mark.parametrize("camera", [(0.0, 0.0), (-2.0, 1.0), (-4.0, 3.0)])
def test_the_residual_is_the_motion_of_the_object_over_the_wall(camera):
    grays, _ = scene(2, camera=camera, speed=3)
    moved = residual_motion(grays[0], grays[1])
    inside = np.zeros((WIDE, WIDE), bool)
    inside[96:120, LEFT + 16 : LEFT + 40] = True  # away from the object's edge, where flow is smooth
    outside = np.ones((WIDE, WIDE), bool)
    outside[60:156, LEFT - 20 : LEFT + 80] = False
    outside[[*range(12), *range(-12, 0)]] = outside[:, [*range(12), *range(-12, 0)]] = False
    residual = UNIT * cv2.resize(moved.residual, (WIDE, WIDE))
    assert np.median(residual[inside]) == pytest.approx(np.hypot(3 - camera[0], camera[1]), rel=0.15)
    assert np.median(residual[outside]) < 0.2
    assert moved.inliers > 0.7


def test_a_zoom_is_the_camera():
    wall = texture(3, 600, 600)
    pictures = [smaller(wall[at : 600 - at, at : 600 - at]) for at in (0, 10)]
    assert np.median(residual_motion(*pictures).residual) < 0.3 / UNIT  # corners move by 5 pixels of 224


def test_weights_follow_the_formula():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 256, (56, 56)).astype(np.uint8)
    residual = rng.uniform(0, 4, (56, 56)).astype(np.float32)
    unit = sum(float(h) * float(r) for h, r in zip(level.flat, residual.flat, strict=True)) / level.sum()
    want = level * ((0.1 + np.minimum(residual / unit, 1)) / 1.1) ** 0.5
    want *= level.max() / want.max()
    got = weigh(level, residual)
    assert got.max() == level.max()
    assert np.abs(got.astype(float) - want).max() <= 1.01  # weights and result are rounded


def test_less_than_an_eighth_of_a_pixel_is_noise():
    level = np.full((56, 56), 100, np.uint8)
    residual = np.zeros((56, 56), np.float32)
    residual[:, :28] = 0.025  # alone it would be the whole of the motion
    lowest = weigh(level, residual).min() / 100
    assert lowest == pytest.approx((0.1 / 0.3) ** 0.5, abs=0.02)


@pytest.mark.parametrize("side", [28, 56, 112, 224])
def test_maps_of_any_size(side):
    grays, levels = scene(8)
    small = np.stack([cv2.resize(one, (side, side), interpolation=cv2.INTER_AREA) for one in levels])
    weighed = WeighWindows().push(small, grays, no_cuts(8), serial)
    assert weighed.shape == small.shape
    lamp = side * 175 // WIDE
    assert (weighed[:, lamp, lamp] < 0.6 * small[:, lamp, lamp]).all()
    assert (weighed.max((1, 2)) == small.max((1, 2))).all()


WAYS = [WeighWindows, WeighByPast]


@pytest.mark.parametrize("way", WAYS)
def test_heat_on_the_wall_fades_and_heat_on_the_object_stays(way):
    grays, levels = scene(20)
    weighed = way().push(levels, grays, no_cuts(20), serial)
    first = 0 if way is WeighWindows else 9  # three frames are examined before: 1, 5 and 9
    assert (weighed[first:, 175, 175] < 0.6 * levels[first:, 175, 175]).all()
    for at in range(first, 20):
        left = LEFT + 3 * at
        inside = (at, slice(96, 120), slice(left + 16, left + 40))
        assert np.median(weighed[inside]) >= levels[inside].max()
    np.testing.assert_array_equal(weighed[:first], levels[:first])


@pytest.mark.parametrize("way", WAYS)
def test_maps_stay_where_motion_says_nothing(way):
    still, levels = scene(12, camera=(0, 0), speed=0)
    follows, _ = scene(12, camera=(3.0, 0.0), speed=3)  # the object moves as the wall does
    others = np.stack([smaller(texture(seed)) for seed in range(12)])  # pictures that have nothing in common
    black = np.zeros_like(still)
    for grays in (still, follows, others, black):
        np.testing.assert_array_equal(way().push(levels, grays, no_cuts(12), serial), levels)
    one = way().push(levels[:1], still[:1], no_cuts(1), serial)
    np.testing.assert_array_equal(one, levels[:1])


def test_maps_stay_where_the_rest_moves_and_the_heat_does_not():
    grays, levels = scene(12)
    inverted = 205 - levels
    inverted[:, LAMP, LAMP] = 200
    inverted = np.where(levels == 180, 5, inverted).astype(np.uint8)
    np.testing.assert_array_equal(WeighWindows().push(inverted, grays, no_cuts(12), serial), inverted)


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 3])
def test_the_residual_moves_along_the_flow(steps):
    residual = np.zeros((SIDE, SIDE), np.float32)
    residual[20:30, 25:33] = np.random.default_rng(0).uniform(1, 2, (10, 8))
    flow = np.broadcast_to(np.float32([2, -3]), (SIDE, SIDE, 2))
    moved = Moved(flow, residual, 1.0).after(steps)
    np.testing.assert_allclose(moved, np.roll(residual, (-3 * steps, 2 * steps), axis=(0, 1)))


def test_a_frame_between_has_the_motion_of_its_neighbor():
    grays, levels = scene(3, camera=(0.0, 0.0), speed=6)
    weighed = WeighWindows().push(levels, grays, no_cuts(3), serial)
    moved = residual_motion(grays[1], grays[2])
    for at in range(3):
        np.testing.assert_array_equal(weighed[at], weigh(levels[at], moved.after(at - 1)))
    last = WeighWindows().push(levels[:2], grays[:2], no_cuts(2), serial)  # flow of the last frame, to the one before
    np.testing.assert_array_equal(last[0], weigh(levels[0], residual_motion(grays[1], grays[0]).after(1)))


def shots_of(count):
    """Frames of shots that differ in what they say about motion, and where the shots begin."""
    parts = [scene(count, seed=4), scene(count, camera=(0, 0), speed=0, seed=6), scene(7, camera=(1.0, -2.0), seed=8)]
    grays, levels = (np.concatenate(part) for part in zip(*parts, strict=True))
    return grays, levels, np.isin(np.arange(len(grays)), [count, 2 * count])


@pytest.mark.parametrize("batch", [1, 3, 8, 50])
def test_online_does_not_depend_on_the_batch(batch):
    grays, levels, cuts = shots_of(21)
    whole = WeighByPast().push(levels, grays, cuts, serial)
    by_past = WeighByPast()
    parts = [slice(at, at + batch) for at in range(0, len(grays), batch)]
    joined = [by_past.push(levels[part], grays[part], cuts[part], serial) for part in parts]
    np.testing.assert_array_equal(np.concatenate(joined), whole)
    assert (whole != levels).any((1, 2)).any()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_compared_across_a_cut(way):
    """Frames that go on moving, so that who looks across a cut sees motion; the last shot is a single frame."""
    grays, levels = scene(43)
    weigher = way()
    for first, end in pairwise([0, 21, 42, 43]):
        part, cuts = slice(first, end), np.arange(first, end) == first
        alone = way().push(levels[part], grays[part], cuts, serial)
        np.testing.assert_array_equal(weigher.push(levels[part], grays[part], cuts, serial), alone)


def test_online_forgets_frames_older_than_a_window():
    moving, levels = scene(10, seed=4)
    still, still_levels = scene(WINDOW, camera=(0, 0), speed=0, seed=6)
    by_past = WeighByPast()
    by_past.push(levels, moving, no_cuts(10), serial)
    by_past.push(still_levels, still, no_cuts(WINDOW), serial)
    again, levels = scene(WINDOW, seed=4)
    weighed = by_past.push(levels, again, no_cuts(WINDOW), serial)
    changed = (weighed != levels).any((1, 2))
    assert not changed[: WINDOW // 2 - EVERY].any()  # still frames are the majority
    assert changed[WINDOW // 2 + EVERY :].all()


@pytest.mark.parametrize("way", WAYS)
def test_threads_and_earlier_frames_change_no_bit(way):
    """Flow is computed by objects with buffers, one for each thread."""
    grays, levels = scene(16)
    other, _ = scene(16, seed=5, camera=(-6.0, 2.0))
    once = way().push(levels, grays, no_cuts(16), serial)
    for a, b in pairwise(other):
        residual_motion(a, b)
    with ThreadPoolExecutor(5) as pool:
        again = way().push(levels, grays, no_cuts(16), lambda work, items: list(pool.map(work, items)))
    np.testing.assert_array_equal(once, again)
    assert (once != levels).any()
