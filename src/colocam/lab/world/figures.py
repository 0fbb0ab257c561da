"""Objects as figures: outlines with patterns, joined at pivots so that they move against each other.

Coordinates of a figure: x to the right (the way it faces), y down, in units of its own; ``Figure.unit`` and
``Figure.centre`` say how large it is at rest, so that scenes can give sizes in pixels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colocam.lab.world.textures import Pattern

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Patch:
    """One outline with its pattern.

    Attributes:
        outline: polygon (n, 2) in figure coordinates.
        pattern: how much accent shows where; None for the base colour alone.
        base: index of the base colour among the object's three (0 base, 1 light, 2 dark).
        accent: index of the colour that the pattern brings in.
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


@dataclass(frozen=True, slots=True)
class Figure:
    """Parts in the order they are painted.

    Attributes:
        parts: at least one.
        centre: middle (2,) of the box round the figure at rest.
        unit: geometric mean of that box's width and height: the figure's size in its own units.
        reach: how far the figure goes from its centre, in units of ``unit``.
    """

    parts: tuple[Part, ...]
    centre: Points = field(init=False)
    unit: float = field(init=False)
    reach: float = field(init=False)

    def __post_init__(self) -> None:
        points = np.concatenate([part.points for part in self.parts])
        low, high = points.min(0), points.max(0)
        centre, unit = (low + high) / 2, float(np.sqrt(np.prod(high - low)))
        # A swinging part may go a little further out than it does at rest.
        reach = 1.1 * float(np.linalg.norm(points - centre, axis=1).max()) / unit
        for name, value in (("centre", centre), ("unit", unit), ("reach", reach)):
            object.__setattr__(self, name, value)


def ellipse(x: float, y: float, rx: float, ry: float, *, start: float = 0.0, end: float = 360.0) -> Points:
    """Outline of an ellipse, or of a part of it between two angles in degrees (0 to the right, 90 down)."""
    angle = np.radians(np.linspace(start, end, 49))
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


def star(points: int, inner: float, outer: float = 1.0) -> Points:
    """Outline of a star with ``points`` rays."""
    angle = np.pi * np.arange(2 * points) / points - np.pi / 2
    radius = np.where(np.arange(2 * points) % 2 == 0, outer, inner)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
