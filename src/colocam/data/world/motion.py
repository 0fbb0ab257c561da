"""How things move: smooth random paths of the object, the camera and the light."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def spline(knots: Floats, time: Floats) -> Floats:
    """Values (..., d) of the Catmull–Rom curve through ``knots`` (k, d) at ``time`` in 0–1."""
    padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    place = np.clip(time, 0, 1) * (len(knots) - 1)
    index = np.minimum(place.astype(np.intp), len(knots) - 2)
    t = (place - index)[..., None]
    a, b, c, d = (padded[index + step] for step in range(4))
    curve: Floats = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return curve


def wobble(rng: np.random.Generator, time: Floats, *, knots: int, spread: float) -> Floats:
    """A smooth random function of ``time`` in 0–1 about zero, of standard deviation ``spread`` at its knots."""
    return spline(rng.normal(0, spread, (knots, 1)), time)[..., 0]


@dataclass(frozen=True, slots=True)
class Path:
    """Pose over time, each array shaped like the times: middle in pixels (..., 2), size in pixels, tilt in radians."""

    position: Floats
    size: Floats
    tilt: Floats


STYLES = {"calm": 0.3, "lively": 0.3, "fast": 0.2, "crossing": 0.2}
"""How objects travel, and how often."""


def roam(
    rng: np.random.Generator,
    time: Floats,
    frame: tuple[int, int],
    *,
    size: float,
    style: str,
    limits: tuple[float, float],
) -> Path:
    """A free path about the frame.

    Args:
        rng: everything is drawn from it.
        time: 0–1 over the video, any shape.
        frame: width and height in pixels.
        size: mean size of the thing in pixels.
        style: one of ``STYLES``; ``crossing`` leaves the picture and comes back.
        limits: least and greatest size in pixels.
    """
    count = {"calm": 3, "lively": 5, "fast": 9, "crossing": 5}[style]
    margin = np.minimum(0.5, 0.45 * size / np.array(frame))
    knots = rng.uniform(margin, 1 - margin, (count, 2))
    if style == "crossing":
        knots[1::2, 0] = np.where(rng.random(2) < 0.5, -1.0, 1.0) * (0.5 + 0.5 * size / frame[0]) + 0.5
    position = spline(knots, time) * frame
    sizes = np.clip(size * np.exp(wobble(rng, time, knots=4, spread=0.22)), *limits)
    tilt = np.radians(wobble(rng, time, knots=4, spread=15))
    return Path(position, sizes, tilt)


def leave(rng: np.random.Generator, path: Path, time: Floats, frame: tuple[int, int], *, reach: float) -> Path:
    """The same path, but out of the picture for 20–40 % of the time.

    ``reach`` is how far the thing goes from its middle, in units of its size.
    """
    share, ramp = rng.uniform(0.2, 0.4), 0.1
    start = rng.uniform(0, 1 - share)
    away = np.clip(np.minimum((time - start) / ramp + 1, (start + share - time) / ramp + 1), 0, 1)
    away = (away * away * (3 - 2 * away))[..., None]
    axis, side = int(rng.random() < 0.3), rng.random() < 0.5
    outside = path.position.copy()
    outside[..., axis] = frame[axis] + reach * path.size if side else -reach * path.size
    return Path(path.position * (1 - away) + outside * away, path.size, path.tilt)


@dataclass(frozen=True, slots=True)
class Camera:
    """Where the camera looks on the canvas, per frame: middle (t, 2) in canvas pixels, zoom (t,), roll (t,) radians."""

    middle: Floats
    zoom: Floats
    roll: Floats
    frame: tuple[int, int]

    def matrix(self, index: int, parallax: float = 1.0) -> Floats:
        """The (2, 3) matrix from frame pixels to canvas pixels; things in front have a ``parallax`` above 1."""
        still = self.middle.mean(0)
        x, y = still + parallax * (self.middle[index] - still)
        scale = 1 / self.zoom[index]
        cos, sin = scale * np.cos(self.roll[index]), scale * np.sin(self.roll[index])
        u, v = (np.array(self.frame) - 1) / 2
        return np.array([[cos, -sin, x - cos * u + sin * v], [sin, cos, y - sin * u - cos * v]])


def pan(rng: np.random.Generator, time: Floats, frame: tuple[int, int], canvas: tuple[int, int]) -> Camera:
    """A camera that pans over the canvas, zooms a little, and shakes in some videos."""
    room = (np.array(canvas) - np.array(frame) * 1.12) / 2
    reach = rng.uniform(0.15, 1.0)
    middle = np.array(canvas) / 2 + room * spline(rng.uniform(-reach, reach, (4, 2)), time)
    shake = rng.choice([0.0, 0.0, 0.6, 1.3])
    middle = middle + rng.normal(0, shake, middle.shape)
    middle = np.clip(middle, np.array(canvas) / 2 - room, np.array(canvas) / 2 + room)
    zoom = 1.1 + np.clip(wobble(rng, time, knots=3, spread=0.06), -0.09, 0.2)
    return Camera(middle, zoom, np.radians(wobble(rng, time, knots=3, spread=1.2)), frame)


@dataclass(frozen=True, slots=True)
class Light:
    """Brightness of a video: per-frame gain per channel (t, 3), one gamma, and a shade (t, h, w) over the picture."""

    gain: Floats
    gamma: float
    shade: npt.NDArray[np.float32]


def lighting(rng: np.random.Generator, time: Floats, frame: tuple[int, int]) -> Light:
    """Light that differs by video and changes over time; darker corners, and a slope of light that turns."""
    drift = wobble(rng, time, knots=4, spread=rng.uniform(0.03, 0.22))
    flicker = rng.normal(0, rng.choice([0.0, 0.0, 0.03]), time.shape)
    cast = np.exp(rng.normal(0, 0.06, 3))[None] * np.exp(wobble(rng, time, knots=3, spread=0.04))[:, None] ** [1, 0, -1]
    gain = np.exp(rng.normal(0.02, 0.12) + drift + flicker)[:, None] * cast
    y, x = np.mgrid[-1 : 1 : frame[1] * 1j, -1 : 1 : frame[0] * 1j]
    vignette = 1 - rng.uniform(0, 0.35) * (x * x + y * y) / 2
    angle = rng.uniform(0, 2 * np.pi) + wobble(rng, time, knots=3, spread=0.6)
    slope = rng.uniform(0, 0.18) * (np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y)
    return Light(gain, rng.uniform(0.8, 1.25), (vignette * (1 + slope)).astype(np.float32))
