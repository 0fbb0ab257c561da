"""Figures as images: painted once per video, then warped into each frame with sub-pixel accuracy."""

import math
from dataclasses import dataclass

import cv2
import numpy as np

from colocam.lab.world.figures import Figure, Part, Patch, Points
from colocam.lab.world.textures import Array, as_float

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
    """A figure in its colours, ready to be drawn at any place, size, tilt and time."""

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
        place[:2, 2] = position - place[:2, :2] @ self.figure.centre - 0.5
        for sprite in self.sprites:
            _over(layer, sprite.image, place @ sprite.part.pose(seconds) @ sprite.to_figure)

    def area(self, size: float) -> float:
        """Pixels that the whole figure covers when drawn at ``size``."""
        side = math.ceil(2 * self.figure.reach * REFERENCE)
        layer = np.zeros((side, side, 4), np.float32)
        self.draw(layer, np.array([side / 2, side / 2]), REFERENCE, 0.0, 0.0)
        return float(layer[..., 3].sum()) * (size / REFERENCE) ** 2


def make_actor(figure: Figure, colours: Array, size: float, *, mirrored: bool = False) -> Actor:
    """Paint ``figure`` in ``colours`` (3, 3), sharp enough to be drawn at about ``size`` pixels."""
    density = 1.25 * size / figure.unit
    return Actor(figure, tuple(_paint(part, colours, density) for part in figure.parts), mirrored)


def _paint(part: Part, colours: Array, density: float) -> Sprite:
    points = part.points
    low = points.min(0) - 2 / density
    width, height = (int(n) for n in np.ceil((points.max(0) - low) * density + 2))
    fine = density * OVERSAMPLE
    image = np.zeros((height * OVERSAMPLE, width * OVERSAMPLE, 4), np.float32)
    for patch in part.patches:
        _fill(image, patch, colours, low, fine)
    image = as_float(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA))
    shift = low + 0.5 / density
    to_figure = np.array([[1 / density, 0, shift[0]], [0, 1 / density, shift[1]], [0, 0, 1]])
    return Sprite(image, to_figure, part)


def _fill(image: Array, patch: Patch, colours: Array, origin: Points, density: float) -> None:
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
    colour = colours[patch.base]
    if patch.pattern is not None:
        u, v = np.meshgrid(x, y)
        share = (patch.contrast * patch.pattern(u, v))[..., None]
        colour = colour * (1 - share) + colours[patch.accent] * share
    inside = mask > 0
    region[inside, :3] = np.clip(colour * light, 0, 1)[inside]
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
