"""The objects: figures of outlines with patterns, the six classes, and the things of no class.

Coordinates of a figure: x to the right (the way it faces), y down, in units of its own; ``Figure.unit`` and
``Figure.center`` say how large it is at rest, so that scenes can give sizes in pixels.

A class is a silhouette with its textures, never a color. Each has a large body with a texture in the object's own
colors and a small part with a black and white texture that no other class has: a classifier finds the part first, and
its CAM tends to leave out the body. Things of no class share the kinds of outline (ovals, diamonds, boxes) but none of
the textures of the parts.

Tests: tests/demo/test_scene.py, tests/demo/test_world.py.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from colocam.demo.textures import (
    Array,
    Pattern,
    bricks,
    checks,
    crosses,
    dashes,
    dots,
    lattice,
    plaid,
    puffs,
    reeds,
    rings,
    scales,
    spiral,
    spokes,
    stripes,
    waves,
    zigzag,
)

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Patch:
    """One outline with its pattern.

    Attributes:
        outline: polygon (n, 2) in figure coordinates.
        pattern: how much accent shows where; None for the base color alone.
        base: index of the base color among the object's three (0 base, 1 light, 2 dark).
        accent: index of the color that the pattern brings in.
        contrast: 0–1, how strongly.
    """

    outline: Points
    pattern: Pattern | None = None
    base: int = 0
    accent: int = 1
    contrast: float = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """Patches that move together, in the order they are painted.

    Attributes:
        patches: at least one.
        pivot: where the part is joined to the rest.
        swing: largest angle to either side, degrees.
        spin: turns per second, for wheels.
        squeeze: share by which the part shrinks along its own y axis and grows again, for wings and flames.
        rate: swings or squeezes per second.
        phase: where in its cycle the part begins, 0–1.
    """

    patches: tuple[Patch, ...]
    pivot: tuple[float, float] = (0.0, 0.0)
    swing: float = 0.0
    spin: float = 0.0
    squeeze: float = 0.0
    rate: float = 1.0
    phase: float = 0.0

    @property
    def points(self) -> Points:
        """Corners of all outlines (n, 2)."""
        return np.concatenate([patch.outline for patch in self.patches])

    def pose(self, seconds: float) -> Points:
        """The (3, 3) matrix of this part's own movement at a time."""
        cycle = math.sin(2 * math.pi * (self.rate * seconds + self.phase))
        angle = math.radians(self.swing * cycle + 360 * self.spin * seconds)
        height = 1 - self.squeeze * (0.5 + 0.5 * cycle)
        cos, sin = math.cos(angle), math.sin(angle)
        x, y = self.pivot
        return np.array(
            [
                [cos, -sin * height, x - cos * x + sin * height * y],
                [sin, cos * height, y - sin * x - cos * height * y],
                [0.0, 0.0, 1.0],
            ]
        )


class Figure:
    """Parts in the order they are painted, at least one.

    Attributes:
        parts: as given.
        center: middle (2,) of the box round the figure at rest.
        unit: geometric mean of that box's width and height: the figure's size in its own units.
        reach: how far the figure goes from its center, in units of ``unit``.
    """

    def __init__(self, *parts: Part) -> None:
        points = np.concatenate([part.points for part in parts])
        low, high = points.min(0), points.max(0)
        self.parts = parts
        self.center: Points = (low + high) / 2
        self.unit = float(np.sqrt(np.prod(high - low)))
        # A swinging part may go a little further out than it does at rest.
        self.reach = 1.1 * float(np.linalg.norm(points - self.center, axis=1).max()) / self.unit


def ellipse(x: float, y: float, rx: float, ry: float) -> Points:
    """Outline of an ellipse."""
    angle = np.radians(np.linspace(0.0, 360.0, 49))
    return np.stack([x + rx * np.cos(angle), y + ry * np.sin(angle)], 1)


def polygon(*points: tuple[float, float]) -> Points:
    """Straight outline through the points."""
    return np.array(points, dtype=float)


def smooth(*points: Sequence[float] | Points) -> Points:
    """Closed rounded outline through the points (Catmull–Rom)."""
    knots = np.array(points, dtype=float)
    before, after, beyond = np.roll(knots, 1, 0), np.roll(knots, -1, 0), np.roll(knots, -2, 0)
    t = np.linspace(0, 1, 8, endpoint=False)[None, :, None]
    a, b, c, d = (p[:, None] for p in (before, knots, after, beyond))
    curve: Points = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return curve.reshape(-1, 2)


def limb(points: Sequence[tuple[float, float]], width: float, tip: float | None = None) -> Points:
    """Outline of a bent bar through ``points``, ``width`` thick at its root and ``tip`` at its end."""
    spine = np.array(points, dtype=float)
    along = np.gradient(spine, axis=0)
    normal = np.stack([-along[:, 1], along[:, 0]], 1) / np.linalg.norm(along, axis=1, keepdims=True)
    half = np.linspace(width, width if tip is None else tip, len(spine))[:, None] / 2
    return np.concatenate([spine + normal * half, (spine - normal * half)[::-1]])


def star(points: int, inner: float) -> Points:
    """Outline of a star with ``points`` rays of length 1."""
    angle = np.pi * np.arange(2 * points) / points - np.pi / 2
    radius = np.where(np.arange(2 * points) % 2 == 0, 1.0, inner)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


Builder = Callable[[np.random.Generator], Figure]

BODY = 0.9
"""Contrast of a body's texture."""


def beetle(rng: np.random.Generator) -> Figure:
    """Seen from above: a dotted oval on six legs, a chequered head with feelers."""
    plump = rng.uniform(0.9, 1.1)
    rate = rng.uniform(1.2, 2.2)
    limbs: list[Part] = []
    for index, (x, foot) in enumerate(((-0.42, -0.72), (0.02, -0.03), (0.4, 0.68))):
        for side in (-1, 1):
            leg = limb([(x, 0.3 * side), ((x + foot) / 2 + 0.04, 0.62 * side), (foot, 0.82 * side)], 0.13, 0.08)
            step = 0.5 * ((index + (side > 0)) % 2)
            limbs.append(Part((Patch(leg, base=2),), pivot=(x, 0.3 * side), swing=14, rate=rate, phase=step))
    for side in (-1, 1):
        feeler = limb([(1.06, 0.14 * side), (1.26, 0.28 * side), (1.34, 0.5 * side)], 0.08, 0.06)
        limbs.append(Part((Patch(feeler, base=2),), pivot=(1.06, 0.14 * side), swing=12, rate=rate / 2))
    body = (
        Patch(ellipse(0.88, 0, 0.36, 0.37), partial(checks, period=rng.uniform(0.34, 0.4)), base=1, accent=2),
        Patch(ellipse(0.5, 0, 0.26, 0.44 * plump), base=0),
        Patch(
            ellipse(-0.15, 0, 0.78, 0.55 * plump),
            partial(dots, period=rng.uniform(0.36, 0.44), radius=0.27),
            contrast=BODY,
        ),
        Patch(polygon((-0.92, -0.02), (0.5, -0.02), (0.5, 0.02), (-0.92, 0.02)), base=2),
    )
    return Figure(*limbs, Part(body))


def fish(rng: np.random.Generator) -> Figure:
    """From the side: a scaly lens with fins and a wagging tail, a head with upright bars, an eye."""
    deep = rng.uniform(0.42, 0.54)
    rate = rng.uniform(1.5, 2.5)
    body = smooth(
        *((-0.72, -0.06), (-0.3, -0.75 * deep), (0.25, -deep), (0.75, -0.6 * deep), (1.02, 0.02)),
        *((0.75, 0.6 * deep), (0.25, 0.95 * deep), (-0.3, 0.75 * deep), (-0.72, 0.06)),
    )
    tail = smooth((-0.62, 0), (-0.95, -0.28), (-1.25, -0.46), (-1.12, 0), (-1.25, 0.46), (-0.95, 0.28))
    back = smooth((-0.35, -0.55 * deep), (-0.2, -deep - 0.16), (0.25, -deep - 0.2), (0.45, -0.8 * deep))
    fin = smooth((0.2, 0.12), (-0.08, 0.34), (-0.2, 0.3), (-0.02, 0.1))
    head = body[body[:, 0] > 0.3]
    eye = (0.72, -0.1)
    trunk = (
        Patch(back, partial(stripes, period=0.14, angle=20), base=0, accent=2, contrast=0.5),
        Patch(body, partial(scales, period=rng.uniform(0.24, 0.3)), contrast=BODY),
        Patch(head, partial(stripes, period=rng.uniform(0.26, 0.31)), base=1, accent=2),
        Patch(ellipse(*eye, 0.07, 0.07), base=1),
    )
    return Figure(
        Part((Patch(tail, partial(stripes, period=0.16, angle=90), 0, 2, 0.5),), pivot=(-0.66, 0), swing=16, rate=rate),
        Part(trunk),
        Part((Patch(fin, base=2),), pivot=(0.2, 0.14), swing=18, rate=rate, phase=0.3),
    )


def kite(rng: np.random.Generator) -> Figure:
    """A diamond with chevrons, a spar, and a swinging tail of bows, half light and half dark."""
    waist = rng.uniform(-0.3, -0.15)
    rate = rng.uniform(0.7, 1.2)
    joints = [(0.02, 0.86), (0.08, 1.1), (0.0, 1.48), (0.08, 1.86)]
    tail = [Patch(limb([(0, 0.7), *joints], 0.05), base=2)]
    for x, y in joints[1:]:
        for side, color in ((-0.36, 1), (0.36, 2)):
            bow = polygon((x, y), (x + side, y - 0.2), (x + side, y + 0.2))
            tail.append(Patch(bow, base=color))
    sail = (
        Patch(
            polygon((0, -0.95), (0.68, waist), (0, 0.86), (-0.68, waist)),
            partial(zigzag, period=rng.uniform(0.36, 0.44)),
            contrast=BODY,
        ),
        Patch(limb([(0, -0.95), (0, -0.1), (0, 0.86)], 0.05), base=2),
        Patch(limb([(-0.68, waist), (0, waist), (0.68, waist)], 0.05), base=2),
    )
    return Figure(Part(tuple(tail), pivot=(0, 0.75), swing=12, rate=rate), Part(sail, squeeze=0.06, rate=2 * rate))


def rocket(rng: np.random.Generator) -> Figure:
    """Upright: a banded tube, a nose with black and white bands, a porthole, fins, a flickering flame."""
    width = rng.uniform(0.32, 0.4)
    tube = smooth(
        *((0, -1.0), (0.62 * width, -0.72), (width, -0.3), (width, 0.35), (0.72 * width, 0.72)),
        *((-0.72 * width, 0.72), (-width, 0.35), (-width, -0.3), (-0.62 * width, -0.72)),
    )
    flame = smooth((-0.2, 0.7), (0.2, 0.7), (0.17, 0.95), (0, 1.28), (-0.17, 0.95))
    nose = tube[tube[:, 1] < -0.36]
    fins = [
        polygon(
            *((side * 0.75 * width, 0.2), (side * (width + 0.32), 0.62)),
            *((side * (width + 0.3), 0.94), (side * 0.6 * width, 0.7)),
        )
        for side in (-1, 1)
    ]
    hull = (
        Patch(fins[0], base=2),
        Patch(fins[1], base=2),
        Patch(tube, partial(stripes, period=rng.uniform(0.38, 0.46), angle=90), contrast=BODY),
        Patch(nose, partial(stripes, period=rng.uniform(0.27, 0.32), angle=90), base=1, accent=2),
        Patch(ellipse(0, -0.16, 0.15, 0.15), base=2),
        Patch(limb([(0, 0.3), (0, 0.6), (0, 0.86)], 0.09), base=2),
    )
    burn = Patch(flame, partial(zigzag, period=0.2, height=0.4), base=1, accent=0, contrast=0.6)
    return Figure(Part((burn,), pivot=(0, 0.7), squeeze=0.45, rate=rng.uniform(3, 4.5)), Part(hull))


def snail(rng: np.random.Generator) -> Figure:
    """From the side: a long foot with a speckle, a coiled shell, two eyes on stalks."""
    sway = rng.uniform(0.8, 1.4)
    foot = smooth(
        *((-1.15, 0.6), (-0.5, 0.36), (0.3, 0.38), (0.6, 0.1), (0.78, -0.14), (1.02, -0.1)),
        *((1.06, 0.14), (0.92, 0.46), (0.6, 0.62), (-0.3, 0.64)),
    )
    shell = smooth((-0.72, 0.42), (-0.84, 0), (-0.66, -0.42), (-0.2, -0.62), (0.26, -0.42), (0.42, 0.02), (0.28, 0.42))
    coil = (-0.18, -0.02)
    stalks: list[Part] = []
    for x, phase in ((0.82, 0.0), (0.98, 0.35)):
        stalk = Patch(limb([(x, -0.06), (x + 0.05, -0.28), (x + 0.13, -0.46)], 0.09, 0.07))
        eye = Patch(ellipse(x + 0.14, -0.5, 0.08, 0.08), base=2)
        stalks.append(Part((stalk, eye), pivot=(x, -0.06), swing=10, rate=sway, phase=phase))
    trunk = (
        Patch(foot, partial(dots, period=rng.uniform(0.15, 0.19), radius=0.2), base=0, accent=2, contrast=0.4),
        Patch(shell, partial(rings, period=0.62, center=coil), contrast=0.2),
        Patch(ellipse(*coil, 0.44, 0.44), partial(spiral, pitch=rng.uniform(0.25, 0.3), center=coil), base=1, accent=2),
    )
    return Figure(*stalks, Part(trunk))


def truck(rng: np.random.Generator) -> Figure:
    """From the side: a long box with slanted bands, a cab with a window, a striped sill, spoked wheels."""
    top = 0.16 - rng.uniform(0.62, 0.78)
    spin = float(rng.choice([-1, 1])) * rng.uniform(0.5, 1.3)
    axles = ((-0.72, 0.5), (0.68, 0.5))
    cab = smooth((0.42, 0.42), (0.42, -0.16), (0.5, -0.26), (0.82, -0.26), (0.98, 0.06), (1.12, 0.14), (1.14, 0.42))
    sill = polygon((-1.14, 0.28), (1.16, 0.28), (1.16, 0.5), (-1.14, 0.5))
    load = polygon((-1.12, 0.36), (-1.12, top), (0.36, top), (0.36, 0.36))
    trunk = (
        Patch(load, partial(stripes, period=rng.uniform(0.42, 0.52), angle=35), contrast=BODY),
        Patch(cab),
        Patch(sill, partial(stripes, period=rng.uniform(0.24, 0.29), angle=35), base=1, accent=2),
        Patch(polygon((0.58, -0.16), (0.78, -0.16), (0.9, 0.08), (0.58, 0.08)), base=1),
        *(Patch(ellipse(*axle, 0.32, 0.32), base=2) for axle in axles),
    )
    wheels = [
        Part(
            (Patch(ellipse(*axle, 0.27, 0.27), partial(spokes, count=3, center=axle), base=1, accent=2),),
            pivot=axle,
            spin=spin,
        )
        for axle in axles
    ]
    return Figure(Part(trunk), *wheels)


CLASSES: dict[str, Builder] = {build.__name__: build for build in (beetle, fish, kite, rocket, snail, truck)}

CONTEXTS: dict[str, Callable[[Array, Array, float], Array]] = {
    "beetle": reeds,
    "fish": waves,
    "kite": puffs,
    "rocket": lattice,
    "snail": bricks,
    "truck": dashes,
}
"""What is often about where a class is, and seldom elsewhere: a texture of the background, by period in pixels."""

_CROSS = polygon(
    *((-0.3, -0.8), (0.3, -0.8), (0.3, -0.3), (0.8, -0.3), (0.8, 0.3), (0.3, 0.3)),
    *((0.3, 0.8), (-0.3, 0.8), (-0.3, 0.3), (-0.8, 0.3), (-0.8, -0.3), (-0.3, -0.3)),
)


def distractor(rng: np.random.Generator) -> Figure:
    """A thing of no class: a simple outline, half of the time with a spot that swings about."""
    outlines = (
        ellipse(0, 0, 0.7, 0.48),
        polygon((0, -0.9), (0.6, 0), (0, 0.9), (-0.6, 0)),
        polygon((-0.8, -0.5), (0.8, -0.5), (0.8, 0.5), (-0.8, 0.5)),
        polygon((-0.6, 0.6), (0, -0.7), (0.6, 0.6)),
        star(5, 0.45),
        star(8, 0.7),
        _CROSS,
        smooth(*(star(3, 0.5) * rng.uniform(0.7, 1.2, (6, 1)))),
        smooth(*(star(4, 0.8) * rng.uniform(0.6, 1.3, (8, 1)))),
    )
    patterns = (
        None,
        partial(plaid, period=rng.uniform(0.3, 0.5)),
        partial(crosses, period=rng.uniform(0.3, 0.5)),
        partial(dots, period=rng.uniform(0.3, 0.5), radius=0.3),
        partial(zigzag, period=rng.uniform(0.4, 0.6)),
    )
    outline, pattern = outlines[int(rng.integers(len(outlines)))], patterns[int(rng.integers(len(patterns)))]
    parts = [Part((Patch(outline, pattern, accent=int(rng.integers(1, 3)), contrast=rng.uniform(0.3, 0.7)),))]
    if rng.random() < 0.5:
        x, y, radius = rng.uniform(-0.35, 0.35), rng.uniform(-0.35, 0.35), rng.uniform(0.16, 0.3)
        spot = Patch(ellipse(x, y, radius, radius), base=int(rng.integers(1, 3)))
        parts.append(Part((spot,), swing=15, rate=rng.uniform(0.5, 2)))
    return Figure(*parts)
