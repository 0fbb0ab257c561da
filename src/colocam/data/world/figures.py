"""What a thing is made of: outlines with patterns, joined at pivots so that they move against each other.

Coordinates of a figure: x to the right (the way it faces), y down, in units of its own; ``Figure.unit`` and
``Figure.centre`` say how large it is at rest, so that scenes can give sizes in pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.data.world.textures import Pattern, plain

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """One outline (n, 2) of a figure.

    Attributes:
        outline: polygon in figure coordinates.
        pattern: how much accent shows where.
        base: index of the base colour among the object's three (0 base, 1 accent, 2 trim).
        accent: index of the colour that the pattern brings in.
        contrast: 0–1, how strongly.
        pivot: where the part is joined to the rest.
        swing: largest angle to either side, degrees.
        spin: turns per second, for wheels.
        squeeze: share by which the part shrinks along its own y axis and grows again, for wings and flames.
        rate: swings or squeezes per second.
        phase: where in its cycle the part begins, 0–1.
    """

    outline: Points
    pattern: Pattern = plain()
    base: int = 0
    accent: int = 1
    contrast: float = 1.0
    pivot: tuple[float, float] = (0.0, 0.0)
    swing: float = 0.0
    spin: float = 0.0
    squeeze: float = 0.0
    rate: float = 1.0
    phase: float = 0.0

    def pose(self, seconds: float) -> Points:
        """The (3, 3) matrix of this part's own movement at a time."""
        cycle = np.sin(2 * np.pi * (self.rate * seconds + self.phase))
        angle = np.radians(self.swing * cycle + 360 * self.spin * seconds)
        height = 1 - self.squeeze * (0.5 + 0.5 * cycle)
        return about(self.pivot, rotation(angle) @ np.diag([1.0, height, 1.0]))


@dataclass(frozen=True, slots=True)
class Figure:
    """Parts in the order they are painted."""

    parts: tuple[Part, ...]

    @property
    def corners(self) -> tuple[Points, Points]:
        """Upper left and lower right corner of the figure at rest."""
        points = np.concatenate([part.outline for part in self.parts])
        return points.min(0), points.max(0)

    @property
    def centre(self) -> Points:
        """Middle of the figure at rest."""
        low, high = self.corners
        return (low + high) / 2

    @property
    def unit(self) -> float:
        """Geometric mean of width and height: the figure's size in its own units."""
        low, high = self.corners
        return float(np.sqrt(np.prod(high - low)))


def rotation(angle: float) -> Points:
    """The (3, 3) matrix that turns by ``angle`` radians."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])


def translation(x: float, y: float) -> Points:
    """The (3, 3) matrix that moves by (x, y)."""
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1]], dtype=float)


def about(pivot: tuple[float, float], matrix: Points) -> Points:
    """The (3, 3) ``matrix`` applied about ``pivot`` in place of the origin."""
    return translation(*pivot) @ matrix @ translation(-pivot[0], -pivot[1])


def ellipse(x: float, y: float, rx: float, ry: float, *, start: float = 0.0, end: float = 360.0) -> Points:
    """Outline of an ellipse, or of a part of it between two angles in degrees (0 to the right, 90 down)."""
    angle = np.radians(np.linspace(start, end, 49))
    return np.stack([x + rx * np.cos(angle), y + ry * np.sin(angle)], 1)


def polygon(*points: tuple[float, float]) -> Points:
    """Straight outline through the points."""
    return np.array(points, dtype=float)


def smooth(*points: tuple[float, float]) -> Points:
    """Closed rounded outline through the points (Catmull–Rom)."""
    knots = np.array(points, dtype=float)
    before, after, beyond = np.roll(knots, 1, 0), np.roll(knots, -1, 0), np.roll(knots, -2, 0)
    t = np.linspace(0, 1, 8, endpoint=False)[None, :, None]
    a, b, c, d = (p[:, None] for p in (before, knots, after, beyond))
    curve = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
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
