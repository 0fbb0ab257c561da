"""Background and foreground: painted canvases larger than the frame, over which the camera pans."""

from collections.abc import Sequence

import cv2
import numpy as np

from colocam.lab.world.classes import CONTEXTS, distractor
from colocam.lab.world.colours import object_colours, oklch, ramp
from colocam.lab.world.figures import Points
from colocam.lab.world.sprites import lay, make_actor
from colocam.lab.world.textures import Array, as_float, fractal_noise, lattice, stripes


def paint_background(
    rng: np.random.Generator, colours: Array, width: int, height: int, *, unit: float, contexts: Sequence[str]
) -> Array:
    """A cluttered, textured background, opaque RGBA (height, width, 4) in 0–1.

    Args:
        rng: everything is drawn from it.
        colours: the background's colours (k, 3).
        width: of the canvas in pixels.
        height: of the canvas in pixels.
        unit: the frame's height in pixels, which sets the size of the things.
        contexts: classes whose context appears as patches.
    """
    field = fractal_noise(
        rng, height, width, cell=unit * rng.uniform(0.3, 0.8), octaves=6, gain=rng.uniform(0.45, 0.65)
    )
    y, x = np.mgrid[:height, :width].astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    slope = 0.5 + (np.cos(angle) * (x / width - 0.5) + np.sin(angle) * (y / height - 0.5))
    canvas = ramp(colours, field * 0.7 + slope * 0.3)
    if rng.random() < 0.5:
        canvas = _ground(rng, canvas, colours, y, unit)
    canvas = _soft_shapes(rng, canvas, colours, unit)
    canvas = _lines(rng, canvas, colours, unit)
    for tag in contexts:
        for _ in range(int(rng.integers(1, 4))):
            canvas = _context(rng, canvas, colours, tag, unit)
    grain = fractal_noise(rng, height, width, cell=rng.uniform(2, 6), octaves=2) - 0.5
    canvas = as_float(np.clip(canvas * (1 + rng.uniform(0.1, 0.3) * grain[..., None]), 0, 1))
    opaque = np.dstack([canvas, np.ones((height, width), np.float32)])
    _clutter(rng, opaque, unit)
    return opaque


def _ground(rng: np.random.Generator, canvas: Array, colours: Array, y: Array, unit: float) -> Array:
    """Another surface below an uneven horizon, seen at a slant."""
    height, width = y.shape
    horizon = height * rng.uniform(0.4, 0.75)
    edge = fractal_noise(rng, 1, width, cell=unit * 0.4, octaves=4)[0] * unit * rng.uniform(0.05, 0.35)
    flat = fractal_noise(rng, max(height // 4, 1), width, cell=unit * 0.25, octaves=5, gain=0.6)
    surface = ramp(colours[::-1], as_float(cv2.resize(flat, (width, height), interpolation=cv2.INTER_LINEAR)))
    below = np.clip(y - horizon - edge, 0, 1)[..., None]
    return as_float(canvas * (1 - below) + surface * below)


def _soft_shapes(rng: np.random.Generator, canvas: Array, colours: Array, unit: float) -> Array:
    """Blurred blobs and boxes, as of things out of focus."""
    height, width = canvas.shape[:2]
    for _ in range(3):
        layer, blur = canvas.copy(), rng.uniform(0.004, 0.05) * unit
        for _ in range(int(rng.integers(2, 6))):
            colour = colours[int(rng.integers(len(colours)))]
            if rng.random() < 0.35:
                colour = oklch(rng.uniform(0.3, 0.85), rng.uniform(0.02, 0.13), rng.uniform(0, 360))
            centre = (rng.uniform(0, width), rng.uniform(0, height))
            axes = tuple(rng.uniform(0.05, 0.32, 2) * unit)
            rotated = (centre, axes, float(rng.uniform(0, 180)))
            corners = cv2.boxPoints(rotated) if rng.random() < 0.5 else _oval(rotated)
            cv2.fillPoly(layer, [np.round(corners * 16).astype(np.int32)], colour.tolist(), cv2.LINE_8, 4)
        canvas = as_float(0.25 * canvas + 0.75 * cv2.GaussianBlur(layer, (0, 0), max(blur, 0.6)))
    return canvas


def _oval(rotated: tuple[tuple[float, float], tuple[float, ...], float]) -> Points:
    (x, y), (a, b), angle = rotated
    t, turn = np.linspace(0, 2 * np.pi, 40), np.radians(angle)
    u, v = a / 2 * np.cos(t), b / 2 * np.sin(t)
    return np.stack([x + u * np.cos(turn) - v * np.sin(turn), y + u * np.sin(turn) + v * np.cos(turn)], 1)


def _lines(rng: np.random.Generator, canvas: Array, colours: Array, unit: float) -> Array:
    """Families of lines: twigs, cables, planks."""
    height, width = canvas.shape[:2]
    layer = canvas.copy()
    for _ in range(int(rng.integers(1, 4))):
        direction, colour = rng.uniform(0, np.pi), colours[int(rng.integers(len(colours)))] * rng.uniform(0.6, 1.2)
        for _ in range(int(rng.integers(2, 9))):
            middle = np.array([rng.uniform(0, width), rng.uniform(0, height)])
            turn = direction + rng.normal(0, 0.08)
            half = np.array([np.cos(turn), np.sin(turn)]) * unit * rng.uniform(0.1, 0.6)
            ends = [tuple(int(n) for n in np.round((middle + sign * half) * 16)) for sign in (-1, 1)]
            thickness = max(1, round(unit * rng.uniform(0.005, 0.03)))
            cv2.line(layer, ends[0], ends[1], np.clip(colour, 0, 1).tolist(), thickness, cv2.LINE_8, 4)
    return as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.5, 1.2)))


def _context(rng: np.random.Generator, canvas: Array, colours: Array, tag: str, unit: float) -> Array:
    """A patch of the texture that goes with a class, with an uneven soft edge, in the background's own colours."""
    height, width = canvas.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    cx, cy, reach = rng.uniform(0.1, 0.9) * width, rng.uniform(0.15, 0.85) * height, rng.uniform(0.22, 0.42) * unit
    uneven = fractal_noise(rng, height, width, cell=0.3 * unit, octaves=3)
    mask = np.clip((1.1 - np.hypot((x - cx) / 1.3, y - cy) / reach + 0.5 * (uneven - 0.5)) * 6, 0, 1)[..., None]
    turn = np.radians(rng.normal(0, 8))
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    share = cv2.GaussianBlur(CONTEXTS[tag](unit * rng.uniform(0.1, 0.15))(u, v), (0, 0), 0.7)[..., None]
    first, second = (colours[0], colours[-1]) if rng.random() < 0.5 else (colours[-1], colours[0])
    texture = (0.6 * canvas + 0.4 * first) * (1 - share) + (0.4 * canvas + 0.6 * second) * share
    return as_float(canvas * (1 - mask) + texture * mask)


def _clutter(rng: np.random.Generator, canvas: Array, unit: float) -> None:
    """Small crisp things of no class that lie about; painted in place."""
    height, width = canvas.shape[:2]
    layer = np.zeros((height, width, 4), np.float32)
    for _ in range(int(rng.integers(2, 9))):
        size = unit * rng.uniform(0.04, 0.16)
        thing = make_actor(distractor(rng), object_colours(rng, rng.uniform(0, 360)), size)
        thing.draw(layer, rng.uniform(0, 1, 2) * (width, height), size, rng.uniform(0, 2 * np.pi), 0.0)
    lay(canvas, as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.4, 1.0))))


def paint_foreground(
    rng: np.random.Generator, colours: Array, width: int, height: int, *, target: Points, size: float
) -> Array:
    """What stands between camera and object, premultiplied RGBA (height, width, 4): bars, a post, a fence or foliage.

    It is placed so that it crosses ``target`` (canvas pixels); ``size`` is the object's size in pixels.
    """
    layer = np.zeros((height, width, 4), np.float32)
    hue = rng.uniform(0, 360)
    leaf = oklch(rng.uniform(0.25, 0.6), rng.uniform(0.02, 0.1), hue)
    colour = leaf if rng.random() < 0.5 else colours[int(rng.integers(len(colours)))] * rng.uniform(0.4, 0.8)
    kind = rng.choice(["bars", "post", "foliage", "mesh"], p=[0.3, 0.25, 0.35, 0.1])
    y, x = np.mgrid[:height, :width].astype(np.float32)
    if kind == "mesh":
        mask = lattice(size * rng.uniform(0.5, 0.8), 0.12)(x, y)
        _tint(layer, mask * (np.hypot(x - target[0], y - target[1]) < 1.2 * size), colour, y)
    elif kind == "bars":
        bars = stripes(
            size * rng.uniform(0.45, 0.7), rng.normal(0, 6) + 90 * float(rng.random() < 0.3), rng.uniform(0.2, 0.35)
        )
        _tint(layer, bars(x - np.float32(target[0]), y) * (np.abs(x - target[0]) < 1.4 * size), colour, y)
    elif kind == "post":
        half, lean = size * rng.uniform(0.1, 0.24), rng.normal(0, 0.12)
        _tint(layer, (np.abs(x - target[0] - lean * (y - target[1])) < half).astype(np.float32), colour, y)
    else:
        for _ in range(int(rng.integers(10, 26))):
            centre = target + rng.normal(0, 0.36, 2) * size
            rotated = (
                (centre[0], centre[1]),
                tuple(rng.uniform((0.2, 0.07), (0.5, 0.16)) * size),
                float(rng.uniform(0, 180)),
            )
            shade = np.clip(colour * rng.uniform(0.7, 1.35), 0, 1)
            cv2.fillPoly(layer, [np.round(_oval(rotated) * 16).astype(np.int32)], [*shade.tolist(), 1.0], cv2.LINE_8, 4)
    return as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.6, 1.3)))


def _tint(layer: Array, mask: Array, colour: Array, y: Array) -> None:
    """Fill ``mask`` with ``colour``, lighter above; in place."""
    shade = np.clip(colour * (1.15 - 0.4 * y / y.shape[0])[..., None], 0, 1)
    layer[..., :3] = shade * mask[..., None]
    layer[..., 3] = mask
