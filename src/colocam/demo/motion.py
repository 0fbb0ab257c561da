"""Motion: smooth random routes of objects, camera and light. Times are in seconds.

Tests: tests/demo/test_scene.py, tests/demo/test_world.py.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colocam.demo.textures import Array, as_float
from colocam.types import Float64Array

Size = tuple[int, int]
"""Width and height in pixels."""


def spline(knots: Float64Array, interval: float, time: Float64Array) -> Float64Array:
    """Values (..., d) at ``time`` of the Catmull–Rom curve through ``knots`` (k, d), ``interval`` seconds apart."""
    padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    place = np.clip(time / interval, 0, len(knots) - 1)
    index = np.minimum(place.astype(np.intp), len(knots) - 2)
    t = (place - index)[..., None]
    a, b, c, d = (padded[index + step] for step in range(4))
    curve: Float64Array = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return curve


def knots_needed(time: Float64Array, interval: float) -> int:
    """How many knots ``interval`` seconds apart reach to the end of ``time``."""
    return max(int(np.ceil(time.max() / interval)), 1) + 1


def wobble(rng: np.random.Generator, time: Float64Array, *, interval: float, spread: float) -> Float64Array:
    """A smooth random function of ``time`` about zero; its knots have the standard deviation ``spread``."""
    return spline(rng.normal(0, spread, (knots_needed(time, interval), 1)), interval, time)[..., 0]


@dataclass(frozen=True, slots=True)
class Route:
    """Pose over time, each array shaped like the times: middle in pixels (..., 2), size in pixels, tilt in radians."""

    position: Float64Array
    size: Float64Array
    tilt: Float64Array


@dataclass(frozen=True, slots=True)
class Style:
    """How a thing travels.

    Attributes:
        share: of the videos.
        interval: seconds from one place to the next.
        crossing: every second place lies outside the frame, to the left or right.
    """

    share: float
    interval: float
    crossing: bool = False


STYLES = {
    "calm": Style(0.3, 2.0),
    "lively": Style(0.3, 1.0),
    "fast": Style(0.2, 0.5),
    "crossing": Style(0.2, 1.0, crossing=True),
}


def roam(
    rng: np.random.Generator, time: Float64Array, frame: Size, *, size: float, style: Style, limits: tuple[float, float]
) -> Route:
    """A free route about the frame.

    Args:
        rng: everything is drawn from it.
        time: seconds, any shape.
        frame: width and height in pixels.
        size: mean size of the thing in pixels.
        style: how it travels.
        limits: least and greatest size in pixels.
    """
    margin = np.minimum(0.5, 0.45 * size / np.array(frame))
    knots = rng.uniform(margin, 1 - margin, (knots_needed(time, style.interval), 2))
    if style.crossing:
        side = np.where(rng.random(len(knots[1::2])) < 0.5, -1.0, 1.0)
        knots[1::2, 0] = 0.5 + side * (0.5 + 0.5 * size / frame[0])
    position = spline(knots, style.interval, time) * frame
    sizes = np.clip(size * np.exp(wobble(rng, time, interval=1.3, spread=0.22)), *limits)
    tilt = np.radians(wobble(rng, time, interval=1.3, spread=15))
    return Route(position, sizes, tilt)


def leave(rng: np.random.Generator, route: Route, time: Float64Array, frame: Size, *, reach: float) -> Route:
    """The same route, but out of the frame for 20–40 % of the time; leaving and returning take 0.4 seconds each.

    ``reach`` is how far the thing goes from its middle, in units of its size.
    """
    duration, ramp = float(time.max()), 0.4
    share = rng.uniform(0.2, 0.4) * duration
    start = rng.uniform(0, duration - share)
    away = np.clip(np.minimum((time - start) / ramp + 1, (start + share - time) / ramp + 1), 0, 1)
    away = (away * away * (3 - 2 * away))[..., None]
    axis, side = int(rng.random() < 0.3), rng.random() < 0.5
    outside = route.position.copy()
    outside[..., axis] = frame[axis] + reach * route.size if side else -reach * route.size
    return Route(route.position * (1 - away) + outside * away, route.size, route.tilt)


@dataclass(frozen=True, slots=True)
class Camera:
    """Where the camera looks on the canvas, per frame: middle (t, 2) in canvas pixels, zoom (t,), roll (t,) radians."""

    middle: Float64Array
    zoom: Float64Array
    roll: Float64Array
    frame: Size

    def matrix(self, index: int, parallax: float = 1.0) -> Float64Array:
        """The (2, 3) matrix from frame pixels to canvas pixels; things in front have a ``parallax`` above 1."""
        still = self.middle.mean(0)
        x, y = still + parallax * (self.middle[index] - still)
        scale = 1 / self.zoom[index]
        cos, sin = scale * np.cos(self.roll[index]), scale * np.sin(self.roll[index])
        u, v = (np.array(self.frame) - 1) / 2
        return np.array([[cos, -sin, x - cos * u + sin * v], [sin, cos, y - sin * u - cos * v]])


def pan(rng: np.random.Generator, time: Float64Array, frame: Size, canvas: Size) -> Camera:
    """A camera that pans over the canvas, zooms a little, and shakes in some videos."""
    room = (np.array(canvas) - np.array(frame) * 1.12) / 2
    reach = rng.uniform(0.15, 1.0)
    interval = 1.3
    knots = rng.uniform(-reach, reach, (knots_needed(time, interval), 2))
    shake = rng.choice([0.0, 0.0, 0.6, 1.3])
    offset = np.clip(room * spline(knots, interval, time) + rng.normal(0, shake, (len(time), 2)), -room, room)
    zoom = 1.1 + np.clip(wobble(rng, time, interval=2.0, spread=0.06), -0.09, 0.2)
    roll = np.radians(wobble(rng, time, interval=2.0, spread=1.2))
    return Camera(np.array(canvas) / 2 + offset, zoom, roll, frame)


class Light(NamedTuple):
    """Brightness of a video: per-frame gain per channel (t, 3), one gamma, and a shade (t, h, w) over the frame."""

    gain: Float64Array
    gamma: float
    shade: Array


def lighting(rng: np.random.Generator, time: Float64Array, frame: Size) -> Light:
    """Light that differs by video and changes over time; darker corners, and a slope of light that turns."""
    drift = wobble(rng, time, interval=1.3, spread=rng.uniform(0.03, 0.22))
    flicker = rng.normal(0, rng.choice([0.0, 0.0, 0.03]), time.shape)
    warmth = wobble(rng, time, interval=2.0, spread=0.04)[:, None] * np.array([1.0, 0.0, -1.0])
    gain = np.exp(rng.normal(0.02, 0.12) + rng.normal(0, 0.06, 3) + (drift + flicker)[:, None] + warmth)
    y, x = np.mgrid[-1 : 1 : frame[1] * 1j, -1 : 1 : frame[0] * 1j]
    vignette = 1 - rng.uniform(0, 0.35) * (x * x + y * y) / 2
    angle = (rng.uniform(0, 2 * np.pi) + wobble(rng, time, interval=2.0, spread=0.6))[:, None, None]
    slope = rng.uniform(0, 0.18) * (np.cos(angle) * x + np.sin(angle) * y)
    return Light(gain, float(rng.uniform(0.8, 1.25)), as_float(vignette * (1 + slope)))
