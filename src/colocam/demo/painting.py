"""Figures, background and foreground as images.

Figures are painted once per video, then warped into each frame with sub-pixel accuracy. Background and foreground are
canvases larger than the frame, over which the camera pans.

Tests: tests/demo/test_scene.py, tests/demo/test_world.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from colocam.demo.figures import CONTEXTS, Figure, Part, Patch, Points, distractor
from colocam.demo.textures import Array, as_float, fractal_noise, lattice, object_colors, oklch, ramp, stripes

OVERSAMPLE = 3
RIM = 0.035
"""Width of the darker rim of a patch, in figure units."""
REFERENCE = 64.0
"""Size in pixels at which the area of a figure is measured."""


@dataclass(frozen=True, slots=True)
class Sprite:
    """A painted part: premultiplied RGBA (h, w, 4) in 0–1 and the (3, 3) matrix from its pixels to figure units."""

    image: Array
    to_figure: Points
    part: Part


@dataclass(frozen=True, slots=True)
class Actor:
    """A figure in its colors, ready to be drawn at any place, size, tilt and time."""

    figure: Figure
    sprites: tuple[Sprite, ...]
    mirrored: bool

    def draw(self, layer: Array, position: Points, size: float, tilt: float, seconds: float) -> None:
        """Paint over ``layer``, premultiplied RGBA (h, w, 4), in place.

        ``position`` is the middle of the figure and ``size`` its size in pixels (0, 0 is the outer corner of the first
        pixel), ``tilt`` is in radians.
        """
        scale = size / self.figure.unit
        cos, sin = scale * math.cos(tilt), scale * math.sin(tilt)
        flip = -1.0 if self.mirrored else 1.0
        place = np.array([[flip * cos, -sin, 0.0], [flip * sin, cos, 0.0], [0.0, 0.0, 1.0]])
        # Half a pixel, since warping counts from the middle of the first pixel.
        place[:2, 2] = position - place[:2, :2] @ self.figure.center - 0.5
        for sprite in self.sprites:
            _over(layer, sprite.image, place @ sprite.part.pose(seconds) @ sprite.to_figure)

    def area(self) -> float:
        """Pixels that the whole figure covers when drawn at size 1; at other sizes the square of it as many."""
        side = math.ceil(2 * self.figure.reach * REFERENCE)
        layer = np.zeros((side, side, 4), np.float32)
        self.draw(layer, np.array([side / 2, side / 2]), REFERENCE, 0.0, 0.0)
        return float(layer[..., 3].sum()) / REFERENCE**2


def make_actor(figure: Figure, colors: Array, size: float, *, mirrored: bool = False) -> Actor:
    """Paint ``figure`` in ``colors`` (3, 3), sharp enough to be drawn at about ``size`` pixels."""
    density = 1.25 * size / figure.unit
    return Actor(figure, tuple(_paint(part, colors, density) for part in figure.parts), mirrored)


def _paint(part: Part, colors: Array, density: float) -> Sprite:
    points = part.points
    low = points.min(0) - 2 / density
    width, height = (int(n) for n in np.ceil((points.max(0) - low) * density + 2))
    fine = density * OVERSAMPLE
    image = np.zeros((height * OVERSAMPLE, width * OVERSAMPLE, 4), np.float32)
    for patch in part.patches:
        _fill(image, patch, colors, low, fine)
    image = as_float(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA))
    shift = low + 0.5 / density
    to_figure = np.array([[1 / density, 0, shift[0]], [0, 1 / density, shift[1]], [0, 0, 1]])
    return Sprite(image, to_figure, part)


def _fill(image: Array, patch: Patch, colors: Array, origin: Points, density: float) -> None:
    """Paint one patch over ``image`` (h, w, 4), whose upper left corner is at ``origin``; in place."""
    low, high = patch.outline.min(0), patch.outline.max(0)
    left, upper = (int(n) for n in np.floor((low - origin) * density))
    right, lower = (int(n) for n in np.ceil((high - origin) * density) + 1)
    region = image[upper:lower, left:right]
    x = (origin[0] + (np.arange(left, right) + 0.5) / density).astype(np.float32)
    y = (origin[1] + (np.arange(upper, lower) + 0.5) / density).astype(np.float32)
    mask = np.zeros(region.shape[:2], np.uint8)
    corners = np.round(((patch.outline - origin) * density - (left, upper) - 0.5) * 16).astype(np.int32)
    cv2.fillPoly(mask, [corners], 255, shift=4)
    light = np.broadcast_to(1.08 - 0.26 * (y[:, None] - low[1]) / (high[1] - low[1]), mask.shape)
    rim = cv2.distanceTransform(mask, cv2.DIST_L2, 3) < RIM * density
    light = np.where(rim, 0.62 * light, light)[..., None]
    color = colors[patch.base]
    if patch.pattern is not None:
        u, v = np.meshgrid(x, y)
        share = (patch.contrast * patch.pattern(u, v))[..., None]
        color = color * (1 - share) + colors[patch.accent] * share
    inside = mask > 0
    region[inside, :3] = np.clip(color * light, 0, 1)[inside]
    region[inside, 3] = 1


def _over(layer: Array, image: Array, matrix: Points) -> None:
    """Lay ``image`` over ``layer`` where ``matrix`` (3, 3) puts the middles of its pixels; in place."""
    height, width = image.shape[:2]
    (a, b, x), (c, d, y) = matrix[:2].tolist()
    x1 = max(math.floor(x + min(a * width, 0) + min(b * height, 0)) - 1, 0)
    y1 = max(math.floor(y + min(c * width, 0) + min(d * height, 0)) - 1, 0)
    x2 = min(math.ceil(x + max(a * width, 0) + max(b * height, 0)) + 2, layer.shape[1])
    y2 = min(math.ceil(y + max(c * width, 0) + max(d * height, 0)) + 2, layer.shape[0])
    if x2 <= x1 or y2 <= y1:
        return
    shifted = np.array([[a, b, x - x1], [c, d, y - y1]])
    warped = cv2.warpAffine(image, shifted, (x2 - x1, y2 - y1), flags=cv2.INTER_LINEAR)
    lay(layer[y1:y2, x1:x2], as_float(warped))


def lay(below: Array, above: Array) -> None:
    """Lay ``above`` over ``below``, both premultiplied RGBA (h, w, 4); in place."""
    through = 1 - above[..., 3]
    below *= cv2.merge([through, through, through, through])  # numpy takes twice as long to broadcast it
    below += above


def paint_background(
    rng: np.random.Generator, colors: Array, width: int, height: int, *, unit: float, contexts: Sequence[str]
) -> Array:
    """A cluttered, textured background, opaque RGBA (height, width, 4) in 0–1.

    Args:
        rng: everything is drawn from it.
        colors: the background's colors (k, 3).
        width: of the canvas in pixels.
        height: of the canvas in pixels.
        unit: the frame's height in pixels, which sets the size of the things.
        contexts: classes whose context appears as patches.
    """
    cell, gain = unit * rng.uniform(0.3, 0.8), rng.uniform(0.45, 0.65)
    field = fractal_noise(rng, height, width, cell=cell, octaves=6, gain=gain)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    slope = 0.5 + (np.cos(angle) * (x / width - 0.5) + np.sin(angle) * (y / height - 0.5))
    canvas = ramp(colors, field * 0.7 + slope * 0.3)
    if rng.random() < 0.5:
        canvas = _ground(rng, canvas, colors, y, unit)
    canvas = _soft_shapes(rng, canvas, colors, unit)
    canvas = _lines(rng, canvas, colors, unit)
    for tag in contexts:
        for _ in range(int(rng.integers(1, 4))):
            canvas = _context(rng, canvas, colors, tag, unit)
    grain = fractal_noise(rng, height, width, cell=rng.uniform(2, 6), octaves=2) - 0.5
    canvas = as_float(np.clip(canvas * (1 + rng.uniform(0.1, 0.3) * grain[..., None]), 0, 1))
    opaque = np.dstack([canvas, np.ones((height, width), np.float32)])
    _clutter(rng, opaque, unit)
    return opaque


def _ground(rng: np.random.Generator, canvas: Array, colors: Array, y: Array, unit: float) -> Array:
    """Another surface below an uneven horizon, seen at a slant."""
    height, width = y.shape
    horizon = height * rng.uniform(0.4, 0.75)
    edge = fractal_noise(rng, 1, width, cell=unit * 0.4, octaves=4)[0] * unit * rng.uniform(0.05, 0.35)
    flat = fractal_noise(rng, max(height // 4, 1), width, cell=unit * 0.25, octaves=5, gain=0.6)
    surface = ramp(colors[::-1], as_float(cv2.resize(flat, (width, height), interpolation=cv2.INTER_LINEAR)))
    below = np.clip(y - horizon - edge, 0, 1)[..., None]
    return as_float(canvas * (1 - below) + surface * below)


def _soft_shapes(rng: np.random.Generator, canvas: Array, colors: Array, unit: float) -> Array:
    """Blurred blobs and boxes, as of things out of focus."""
    height, width = canvas.shape[:2]
    for _ in range(3):
        layer, blur = canvas.copy(), rng.uniform(0.004, 0.05) * unit
        for _ in range(int(rng.integers(2, 6))):
            color = colors[int(rng.integers(len(colors)))]
            if rng.random() < 0.35:
                color = oklch(rng.uniform(0.3, 0.85), rng.uniform(0.02, 0.13), rng.uniform(0, 360))
            center = (rng.uniform(0, width), rng.uniform(0, height))
            axes = tuple(rng.uniform(0.05, 0.32, 2) * unit)
            rotated = (center, axes, float(rng.uniform(0, 180)))
            corners = cv2.boxPoints(rotated) if rng.random() < 0.5 else _oval(rotated)
            cv2.fillPoly(layer, [np.round(corners * 16).astype(np.int32)], color.tolist(), cv2.LINE_8, 4)
        canvas = as_float(0.25 * canvas + 0.75 * cv2.GaussianBlur(layer, (0, 0), max(blur, 0.6)))
    return canvas


def _oval(rotated: tuple[tuple[float, float], tuple[float, ...], float]) -> Points:
    (x, y), (a, b), angle = rotated
    t, turn = np.linspace(0, 2 * np.pi, 40), np.radians(angle)
    u, v = a / 2 * np.cos(t), b / 2 * np.sin(t)
    return np.stack([x + u * np.cos(turn) - v * np.sin(turn), y + u * np.sin(turn) + v * np.cos(turn)], 1)


def _lines(rng: np.random.Generator, canvas: Array, colors: Array, unit: float) -> Array:
    """Families of lines: twigs, cables, planks."""
    height, width = canvas.shape[:2]
    layer = canvas.copy()
    for _ in range(int(rng.integers(1, 4))):
        direction, color = rng.uniform(0, np.pi), colors[int(rng.integers(len(colors)))] * rng.uniform(0.6, 1.2)
        for _ in range(int(rng.integers(2, 9))):
            middle = np.array([rng.uniform(0, width), rng.uniform(0, height)])
            turn = direction + rng.normal(0, 0.08)
            half = np.array([np.cos(turn), np.sin(turn)]) * unit * rng.uniform(0.1, 0.6)
            ends = [tuple(int(n) for n in np.round((middle + sign * half) * 16)) for sign in (-1, 1)]
            thickness = max(1, round(unit * rng.uniform(0.005, 0.03)))
            cv2.line(layer, ends[0], ends[1], np.clip(color, 0, 1).tolist(), thickness, cv2.LINE_8, 4)
    return as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.5, 1.2)))


def _context(rng: np.random.Generator, canvas: Array, colors: Array, tag: str, unit: float) -> Array:
    """A patch of the texture that goes with a class, with an uneven soft edge, in the background's own colors."""
    height, width = canvas.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    cx, cy, reach = rng.uniform(0.1, 0.9) * width, rng.uniform(0.15, 0.85) * height, rng.uniform(0.22, 0.42) * unit
    uneven = fractal_noise(rng, height, width, cell=0.3 * unit, octaves=3)
    mask = np.clip((1.1 - np.hypot((x - cx) / 1.3, y - cy) / reach + 0.5 * (uneven - 0.5)) * 6, 0, 1)[..., None]
    turn = np.radians(rng.normal(0, 8))
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    share = cv2.GaussianBlur(CONTEXTS[tag](u, v, unit * rng.uniform(0.1, 0.15)), (0, 0), 0.7)[..., None]
    first, second = (colors[0], colors[-1]) if rng.random() < 0.5 else (colors[-1], colors[0])
    texture = (0.6 * canvas + 0.4 * first) * (1 - share) + (0.4 * canvas + 0.6 * second) * share
    return as_float(canvas * (1 - mask) + texture * mask)


def _clutter(rng: np.random.Generator, canvas: Array, unit: float) -> None:
    """Small crisp things of no class that lie about; painted in place."""
    height, width = canvas.shape[:2]
    layer = np.zeros((height, width, 4), np.float32)
    for _ in range(int(rng.integers(2, 9))):
        size = unit * rng.uniform(0.04, 0.16)
        thing = make_actor(distractor(rng), object_colors(rng, rng.uniform(0, 360)), size)
        thing.draw(layer, rng.uniform(0, 1, 2) * (width, height), size, rng.uniform(0, 2 * np.pi), 0.0)
    lay(canvas, as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.4, 1.0))))


def paint_foreground(
    rng: np.random.Generator, colors: Array, width: int, height: int, *, target: Points, size: float
) -> Array:
    """What stands between camera and object, premultiplied RGBA (height, width, 4): bars, a post, a fence or foliage.

    It is placed so that it crosses ``target`` (canvas pixels); ``size`` is the object's size in pixels.
    """
    layer = np.zeros((height, width, 4), np.float32)
    hue = rng.uniform(0, 360)
    leaf = oklch(rng.uniform(0.25, 0.6), rng.uniform(0.02, 0.1), hue)
    color = leaf if rng.random() < 0.5 else colors[int(rng.integers(len(colors)))] * rng.uniform(0.4, 0.8)
    kind = rng.choice(["bars", "post", "foliage", "mesh"], p=[0.3, 0.25, 0.35, 0.1])
    y, x = np.mgrid[:height, :width].astype(np.float32)
    if kind == "mesh":
        mask = lattice(x, y, size * rng.uniform(0.5, 0.8), 0.12)
        _tint(layer, mask * (np.hypot(x - target[0], y - target[1]) < 1.2 * size), color, y)
    elif kind == "bars":
        period, angle = size * rng.uniform(0.45, 0.7), rng.normal(0, 6) + 90 * float(rng.random() < 0.3)
        bars = stripes(x - np.float32(target[0]), y, period, angle, rng.uniform(0.2, 0.35))
        _tint(layer, bars * (np.abs(x - target[0]) < 1.4 * size), color, y)
    elif kind == "post":
        half, lean = size * rng.uniform(0.1, 0.24), rng.normal(0, 0.12)
        _tint(layer, (np.abs(x - target[0] - lean * (y - target[1])) < half).astype(np.float32), color, y)
    else:
        for _ in range(int(rng.integers(10, 26))):
            center = target + rng.normal(0, 0.36, 2) * size
            axes = tuple(rng.uniform((0.2, 0.07), (0.5, 0.16)) * size)
            rotated = ((center[0], center[1]), axes, float(rng.uniform(0, 180)))
            shade = np.clip(color * rng.uniform(0.7, 1.35), 0, 1)
            cv2.fillPoly(layer, [np.round(_oval(rotated) * 16).astype(np.int32)], [*shade.tolist(), 1.0], cv2.LINE_8, 4)
    return as_float(cv2.GaussianBlur(layer, (0, 0), rng.uniform(0.6, 1.3)))


def _tint(layer: Array, mask: Array, color: Array, y: Array) -> None:
    """Fill ``mask`` with ``color``, lighter above; in place."""
    shade = np.clip(color * (1.15 - 0.4 * y / y.shape[0])[..., None], 0, 1)
    layer[..., :3] = shade * mask[..., None]
    layer[..., 3] = mask
