"""Each pattern against a plain description of it, one place at a time."""

import math

import numpy as np
import pytest

from colocam.lab.world import textures


def stripes(u, v):
    turned = u * math.cos(math.radians(30)) + v * math.sin(math.radians(30))
    return (turned / 0.4) - math.floor(turned / 0.4) < 0.3


def checks(u, v):
    return (math.floor(u / 0.2) + math.floor(v / 0.2)) % 2 == 1


def dots(u, v):
    row = math.floor(v / (0.4 * 0.866))
    centres = [((column + (0.5 if row % 2 == 0 else 0.0)) * 0.4, (row + 0.5) * 0.4 * 0.866) for column in range(-8, 9)]
    return min(math.dist((u, v), centre) for centre in centres) < 0.3 * 0.4


def rings(u, v):
    ring, rest = divmod(math.dist((u, v), (0.1, -0.2)), 0.3)
    return ring >= 0 and rest / 0.3 < 0.5


def spokes(u, v):
    x, y = u - 0.1, v + 0.2
    turn = math.degrees(math.atan2(y, x)) % 360
    return int(turn // 36) % 2 == 0 or math.hypot(x, y) < 0.15


def crosses(u, v):
    x, y = abs(u - (math.floor(u / 0.5) + 0.5) * 0.5), abs(v - (math.floor(v / 0.5) + 0.5) * 0.5)
    return (x < 0.05 and y < 0.18) or (y < 0.05 and x < 0.18)


def bricks(u, v):
    course, into = divmod(v, 0.25)
    along = (u + (0.25 if course % 2 else 0.0)) % 0.5
    return into < 0.14 * 0.25 or along < 0.07 * 0.5


def lattice(u, v):
    x, y = u % 0.5, v % 0.5
    half = 0.08 * 0.5
    return x < half or y < half or abs(x - y) < half or abs(x + y - 0.5) < half


def dashes(u, v):
    lane, into = divmod(v, 0.3)
    solid = lane % 2 == 1
    return into < 0.06 and (solid or u % 0.45 < 0.55 * 0.45)


def zigzag(u, v):
    saw = abs(u / 0.3 % 2 - 1)
    return (v / 0.3 + 0.5 * saw) % 1 < 0.5


def waves(u, v):
    return (v / 0.3 + 0.25 * math.sin(2 * math.pi * u / (2.3 * 0.3))) % 1 < 0.35


@pytest.mark.parametrize(
    ("pattern", "by_hand"),
    [
        (textures.stripes(0.4, 30, 0.3), stripes),
        (textures.checks(0.4), checks),
        (textures.dots(0.4, 0.3), dots),
        (textures.rings(0.3, (0.1, -0.2)), rings),
        (textures.spokes(5, (0.1, -0.2), hub=0.15), spokes),
        (textures.crosses(0.5), crosses),
        (textures.bricks(0.25), bricks),
        (textures.lattice(0.5), lattice),
        (textures.dashes(0.3), dashes),
        (textures.zigzag(0.3), zigzag),
        (textures.waves(0.3), waves),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_pattern_is_what_it_says(pattern, by_hand):
    u, v = np.random.default_rng(0).uniform(-1, 1, (2, 40, 30))
    expected = [[by_hand(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(u, v, strict=True)]
    assert np.array_equal(pattern(u, v), np.array(expected, np.float32))


def test_plaid_is_darker_where_its_bands_cross():
    u, v = np.random.default_rng(0).uniform(-1, 1, (2, 500))
    across, down = u / 0.4 % 1 < 0.35, v / 0.4 % 1 < 0.35
    assert textures.plaid(0.4)(u, v).tolist() == ((across.astype(float) + down) / 2).tolist()


def test_scales_hang_in_rows_that_alternate():
    pattern = textures.scales(0.4)
    v = np.linspace(0, 0.8, 400, endpoint=False)
    first, second = (pattern(np.full_like(v, u), v) for u in (0.02, 0.22))
    assert first.mean() == pytest.approx(second.mean(), abs=0.02)
    assert np.array_equal(np.roll(first, 100), second)


def test_reeds_stand_upright():
    u, v = np.meshgrid(np.linspace(0, 10, 400), np.linspace(0, 3, 60))
    values = textures.reeds(1.0)(u, v)
    across, along = np.abs(np.diff(values, axis=1)).sum(1).mean(), np.abs(np.diff(values, axis=0)).sum(0).mean()
    assert across > 15
    assert along < 3


def test_puffs_are_flat_below_and_round_above():
    u, v = np.meshgrid(np.linspace(0, 1.6, 320, endpoint=False), np.linspace(0, 1, 200, endpoint=False))
    cloud = textures.puffs(1.0)(u, v) > 0
    bottom = np.array([np.flatnonzero(column)[-1] for column in cloud.T if column.any()])
    top = np.array([np.flatnonzero(column)[0] for column in cloud.T if column.any()])
    assert np.mean(bottom == bottom.max()) > 0.7
    assert np.ptp(top) > 3 * np.ptp(np.sort(bottom)[len(bottom) // 5 :])
