"""Patterns, noise and colors of the synthetic videos.

A pattern is a function of two coordinate arrays u, v of one shape, and of parameters of its own. It gives, at each
place, how much of the accent color shows through the base color: float32, 0–1. Periods are in the units of the
coordinates. Colors are sampled for each video, so that no color predicts a class.

Tests: tests/demo/test_scene.py, tests/demo/test_world.py.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Pattern = Callable[[Array, Array], Array]


def stripes(u: Array, v: Array, period: float, angle: float = 0.0, duty: float = 0.5) -> Array:
    """Straight bands; ``angle`` in degrees turns them, 0 gives bands across the u axis."""
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    return _below((u * cos + v * sin) / period % 1, duty)


def checks(u: Array, v: Array, period: float) -> Array:
    """Chequer board; ``period`` is two squares."""
    return ((u / period % 1 < 0.5) ^ (v / period % 1 < 0.5)).astype(np.float32)


def dots(u: Array, v: Array, period: float, radius: float = 0.3) -> Array:
    """Discs on a hexagonal lattice; ``radius`` as a share of the period."""
    x, y = u / period, v / (period * 0.866)
    x = x + 0.5 * (np.floor(y) % 2)
    return _below(np.hypot(x % 1 - 0.5, (y % 1 - 0.5) * 0.866), radius)


def rings(u: Array, v: Array, period: float, center: tuple[float, float]) -> Array:
    """Concentric rings."""
    return _below(np.hypot(u - center[0], v - center[1]) / period % 1, 0.5)


def spokes(u: Array, v: Array, count: int, center: tuple[float, float]) -> Array:
    """``count`` sectors round ``center``."""
    return _below(np.arctan2(v - center[1], u - center[0]) * count / (2 * np.pi) % 1, 0.5)


def spiral(u: Array, v: Array, pitch: float, center: tuple[float, float]) -> Array:
    """An Archimedean spiral that grows by ``pitch`` a turn."""
    x, y = u - center[0], v - center[1]
    return _below((np.hypot(x, y) / pitch + np.arctan2(y, x) / (2 * np.pi)) % 1, 0.5)


def scales(u: Array, v: Array, period: float) -> Array:
    """Overlapping fish scales: the rims of discs whose rows are shifted by half a period."""
    x, y = u / period * 2, v / period
    y = y + 0.5 * (np.floor(x) % 2)
    return _below(-np.hypot((x % 1) * 0.85, y % 1 - 0.5), -0.42)


def zigzag(u: Array, v: Array, period: float, height: float = 0.5) -> Array:
    """Chevron bands across the v axis; ``height`` of a tooth as a share of the period."""
    return _below((v / period + height * np.abs(u / period % 2 - 1)) % 1, 0.5)


def waves(u: Array, v: Array, period: float) -> Array:
    """Wavy bands across the v axis."""
    return _below((v / period + 0.25 * np.sin(2 * np.pi * u / (2.3 * period))) % 1, 0.35)


def crosses(u: Array, v: Array, period: float) -> Array:
    """Plus signs on a square lattice."""
    x, y = np.abs(u / period % 1 - 0.5), np.abs(v / period % 1 - 0.5)
    return _below(np.minimum(x, y), 0.1) * _below(np.maximum(x, y), 0.36)


def plaid(u: Array, v: Array, period: float) -> Array:
    """Two families of bands at right angles, darker where they cross."""
    return np.float32(0.5) * (_below(u / period % 1, 0.35) + _below(v / period % 1, 0.35))


def bricks(u: Array, v: Array, period: float) -> Array:
    """A wall: the accent is the mortar; ``period`` is the height of a course."""
    y = v / period
    x = u / (2 * period) + 0.5 * (np.floor(y) % 2)
    return np.maximum(_below(y % 1, 0.14), _below(x % 1, 0.07))


def lattice(u: Array, v: Array, period: float, width: float = 0.16) -> Array:
    """A truss: squares with both diagonals."""
    x, y = u / period % 1, v / period % 1
    diagonals = np.minimum(np.abs(x - y), np.abs(x + y - 1))
    return _below(np.minimum(np.minimum(x, y), diagonals), width / 2)


def reeds(u: Array, v: Array, period: float) -> Array:
    """Upright blades that lean to and fro."""
    x = u / period + 0.35 * np.sin(v / (2.1 * period)) + 0.12 * np.sin(v / (0.7 * period) + u / period)
    return _below(np.abs(x % 1 - 0.5), 0.12 + 0.13 * (np.floor(x) % 3) / 2)


def puffs(u: Array, v: Array, period: float) -> Array:
    """Heaped round clouds with flat undersides."""
    x, y = u / (1.6 * period), v / period
    x = x + 0.43 * np.floor(y)
    x, y = x % 1 - 0.5, y % 1 - 0.65
    lobes = [np.hypot(x * 1.6 - shift, y + rise) - radius for shift, rise, radius in _LOBES]
    return _below(np.maximum(np.minimum.reduce(lobes), y - 0.12), 0.0)


_LOBES = ((-0.42, 0.0, 0.2), (-0.12, 0.16, 0.3), (0.2, 0.08, 0.27), (0.5, -0.01, 0.17))


def dashes(u: Array, v: Array, period: float) -> Array:
    """Lane marks: broken lines with a solid line between each pair."""
    lane = v / period
    broken = _below(u / (1.5 * period) % 1, 0.55)
    return _below(lane % 1, 0.2) * np.where(np.floor(lane) % 2 == 0, broken, np.float32(1))


def fractal_noise(
    rng: np.random.Generator, height: int, width: int, *, cell: float, octaves: int = 4, gain: float = 0.5
) -> Array:
    """Smooth noise (height, width) in 0–1: ``octaves`` grids of random values, the coarsest of ``cell`` pixels."""
    total = np.zeros((height, width), np.float32)
    amplitude = 1.0
    for octave in range(octaves):
        step = max(cell / 2**octave, 1.0)
        grid = rng.random((int(height / step) + 3, int(width / step) + 3), dtype=np.float32)
        fine = cv2.resize(grid, None, fx=step, fy=step, interpolation=cv2.INTER_CUBIC)
        offset = int(step)
        total += amplitude * fine[offset : offset + height, offset : offset + width]
        amplitude *= gain
    low, high = float(total.min()), float(total.max())
    return (total - low) / max(high - low, 1e-6)


def as_float(image: npt.NDArray[Any]) -> Array:
    """The same values as float32; OpenCV's results have no certain type."""
    return image.astype(np.float32, copy=False)


def _below(value: Array, edge: float | Array) -> Array:
    return (value < edge).astype(np.float32)


class Palette(NamedTuple):
    """RGB in 0–1: the object's base, light accent and dark trim (3, 3); the background's (5, 3), dark to light."""

    object: Array
    background: Array


def oklch(lightness: float, chroma: float, hue: float) -> Array:
    """RGB (3,) in 0–1 (gamma-coded sRGB) of a color in OKLCh; ``hue`` in degrees; clipped to the gamut."""
    a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
    lms = np.array([lightness, a, b]) @ _OKLAB_TO_LMS
    linear = np.clip(lms**3 @ _LMS_TO_RGB, 0, 1)
    return as_float(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


_OKLAB_TO_LMS = np.array(
    [[1, 1, 1], [0.3963377774, -0.1055613458, -0.0894841775], [0.2158037573, -0.0638541728, -1.2914855480]]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -1.2684380046, -0.0041960863],
        [-3.3077115913, 2.6097574011, -0.7034186147],
        [0.2309699292, -0.3413193965, 1.7076147010],
    ]
)


def object_colors(rng: np.random.Generator, hue: float) -> Array:
    """Base, light accent and dark trim (3, 3) of one thing, of related hues."""
    chroma, turn = rng.uniform(0.08, 0.19), rng.choice([0.0, 40.0, -40.0, 180.0]) + rng.uniform(-12, 12)
    return np.stack(
        [
            oklch(rng.uniform(0.5, 0.72), chroma, hue),
            oklch(rng.uniform(0.84, 0.95), rng.uniform(0.02, 0.1), hue + turn),
            oklch(rng.uniform(0.2, 0.34), rng.uniform(0.03, 0.09), hue + rng.uniform(-15, 15)),
        ]
    )


def draw_palette(rng: np.random.Generator, *, near: bool) -> Palette:
    """Sample the colors of a video; with ``near`` the background is of about the object's base color."""
    hue = rng.uniform(0, 360)
    thing = object_colors(rng, hue)
    candidates = [
        _background(rng, hue + rng.normal(0, 14), rng.uniform(0.06, 0.16))
        if near
        else _background(rng, hue + rng.uniform(75, 285), rng.uniform(0.02, 0.1))
        for _ in range(12)
    ]
    distance = [float(np.linalg.norm(colors - thing[0], axis=1).min()) for colors in candidates]
    return Palette(thing, candidates[int(np.argmin(distance) if near else np.argmax(distance))])


def _background(rng: np.random.Generator, hue: float, chroma: float) -> Array:
    """Five related colors (5, 3), dark to light."""
    low = rng.uniform(0.22, 0.5)
    levels, drift = np.linspace(low, low + rng.uniform(0.25, 0.42), 5), np.linspace(-0.5, 0.5, 5) * rng.uniform(-40, 40)
    return np.stack(
        [oklch(level, chroma * rng.uniform(0.7, 1.2), hue + turn) for level, turn in zip(levels, drift, strict=True)]
    )


def ramp(colors: Array, value: Array) -> Array:
    """Colors (h, w, 3) found at ``value`` (h, w) in 0–1 along the list ``colors`` (k, 3), linearly between them."""
    place = np.clip(value, 0, 1) * (len(colors) - 1)
    index = np.minimum(place.astype(np.intp), len(colors) - 2)
    share = (place - index)[..., None]
    return as_float(colors[index] * (1 - share) + colors[index + 1] * share)
