"""Figures as pictures: painted once per video, then warped into each frame at sub-pixel accuracy."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from colocam.data.world.figures import Figure, Part, Points, rotation, translation

Array = npt.NDArray[np.float32]

OVERSAMPLE = 3
RIM = 0.035
"""Width of the darker rim of a part, in figure units."""


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

        ``position`` is the middle of the figure and ``size`` its size in pixels, ``tilt`` is in radians.
        """
        scale = size / self.figure.unit
        flip = np.diag([-scale if self.mirrored else scale, scale, 1.0])
        x, y = -self.figure.centre
        place = translation(float(position[0]), float(position[1])) @ rotation(tilt) @ flip @ translation(x, y)
        for sprite in self.sprites:
            _over(layer, sprite.image, place @ sprite.part.pose(seconds) @ sprite.to_figure)

    def area(self, size: float) -> float:
        """Pixels that the whole figure covers when drawn at ``size``."""
        reach = int(3 * REFERENCE)
        layer = np.zeros((reach, reach, 4), np.float32)
        self.draw(layer, np.array([reach / 2, reach / 2]), REFERENCE, 0.0, 0.0)
        return float(layer[..., 3].sum()) * (size / REFERENCE) ** 2


REFERENCE = 64.0


def make_actor(figure: Figure, colours: Array, size: float, *, mirrored: bool = False) -> Actor:
    """Paint ``figure`` in ``colours`` (3, 3), sharp enough to be drawn at about ``size`` pixels."""
    density = 1.25 * size / figure.unit
    return Actor(figure, tuple(_paint(part, colours, density) for part in figure.parts), mirrored)


def _paint(part: Part, colours: Array, density: float) -> Sprite:
    low = part.outline.min(0) - 2 / density
    width, height = (int(n) for n in np.ceil((part.outline.max(0) - low) * density + 2))
    fine = density * OVERSAMPLE
    x = (low[0] + (np.arange(width * OVERSAMPLE) + 0.5) / fine).astype(np.float32)
    y = (low[1] + (np.arange(height * OVERSAMPLE) + 0.5) / fine).astype(np.float32)
    u, v = np.meshgrid(x, y)
    mask = np.zeros(u.shape, np.uint8)
    corners = np.round(((part.outline - low) * fine - 0.5) * 16).astype(np.int32)
    cv2.fillPoly(mask, [corners], 255, shift=4)
    inside = cv2.distanceTransform(mask, cv2.DIST_L2, 3) / fine
    share = (part.contrast * part.pattern(u, v))[..., None]
    colour = colours[part.base] * (1 - share) + colours[part.accent] * share
    span = part.outline.max(0) - part.outline.min(0)
    light = 1.08 - 0.26 * (v - part.outline[:, 1].min()) / max(float(span[1]), 1e-6)
    light *= np.where(inside < RIM, np.float32(0.62), np.float32(1))
    alpha = (mask > 0).astype(np.float32)[..., None]
    image = np.concatenate([np.clip(colour * light[..., None], 0, 1) * alpha, alpha], -1).astype(np.float32)
    image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    to_figure = (
        translation(float(low[0]), float(low[1])) @ np.diag([1 / density, 1 / density, 1]) @ translation(0.5, 0.5)
    )
    return Sprite(image, to_figure, part)


def _over(layer: Array, image: Array, matrix: Points) -> None:
    """Lay ``image`` over ``layer`` where ``matrix`` (3, 3) puts its pixels (frame coordinates: 0 is a pixel's edge)."""
    matrix = translation(-0.5, -0.5) @ matrix
    height, width = image.shape[:2]
    corners = matrix @ np.array([[0, width, 0, width], [0, 0, height, height], [1, 1, 1, 1]])
    x1, y1 = (max(int(n), 0) for n in np.floor(corners[:2].min(1)))
    x2, y2 = (int(n) + 2 for n in np.ceil(corners[:2].max(1)))
    region = layer[y1 : max(y2, 0), x1 : max(x2, 0)]
    if region.size == 0:
        return
    matrix = (translation(-x1, -y1) @ matrix)[:2]
    warped = cv2.warpAffine(image, matrix, (region.shape[1], region.shape[0]), flags=cv2.INTER_LINEAR)
    region *= 1 - warped[..., 3:]
    region += warped
