"""One video: its cast, its frames, and where its object truly is."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from colocam.data.world.backdrop import paint_background, paint_foreground
from colocam.data.world.classes import CLASSES, CONTEXTS, distractor
from colocam.data.world.colours import draw_palette, object_colours
from colocam.data.world.motion import STYLES, Camera, Light, Path, leave, lighting, pan, roam
from colocam.data.world.sprites import Actor, make_actor
from colocam.types import Box

Array = npt.NDArray[np.float32]

SIZES = (0.18, 0.75)
"""Least and greatest size of an object (geometric mean of width and height), as a share of the frame's height."""
CANVAS = (1.9, 1.6)
"""Width and height of the background, in frames."""
PARALLAX = 1.5
SHUTTER = 0.5
"""The share of a frame's time in which the shutter is open: longer makes more motion blur."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a video is to be like; spread evenly over the videos of a class so that small sets are balanced too."""

    near: bool
    empty: bool
    occluded: bool
    context: bool
    distractors: int
    size: float
    style: str


@dataclass(frozen=True, slots=True)
class Shot:
    """One rendered frame.

    Attributes:
        image: (h, w, 3) uint8 RGB.
        box: the object's true box in pixels, None where it is not to be seen.
        hidden: share of the object's pixels in the frame that something stands in front of, 0–1.
    """

    image: npt.NDArray[np.uint8]
    box: Box | None
    hidden: float


def draw_traits(phases: npt.NDArray[np.float64], index: int) -> Traits:
    """Traits of video ``index``: a Kronecker sequence, whose first n terms are spread evenly for every n.

    ``phases`` (7,) in 0–1 differ by class and split.
    """
    steps = np.sqrt([5.0, 2.0, 3.0, 7.0, 11.0, 13.0, 17.0])
    near, empty, occluded, context, company, size, style = (phases + index * steps) % 1
    low, high = np.log(SIZES[0] * 1.2), np.log(SIZES[1] * 0.87)
    return Traits(
        near=bool(near < 0.2),
        empty=bool(empty < 0.25),
        occluded=bool(occluded < 0.45),
        context=bool(context < 0.6),
        distractors=int(np.searchsorted([0.15, 0.5, 0.85], company)),
        size=float(np.exp(low + (high - low) * size)),
        style=list(STYLES)[int(np.searchsorted(np.cumsum(list(STYLES.values()))[:-1], style, side="right"))],
    )


@dataclass(frozen=True, slots=True)
class _Moving:
    actor: Actor
    path: Path

    def layer(self, index: int, seconds: float, frame: tuple[int, int]) -> Array:
        """Premultiplied RGBA (h, w, 4) of one frame, blurred by its own motion while the shutter is open."""
        travel = float(np.abs(np.diff(self.path.position[index], axis=0)).sum())
        count = int(np.clip(np.ceil(travel / 1.5), 1, self.path.size.shape[1]))
        steps = np.linspace(0, self.path.size.shape[1] - 1, count + 2).round().astype(int)[1:-1]
        total = np.zeros((frame[1], frame[0], 4), np.float32)
        for step in steps:
            single = np.zeros_like(total)
            self.actor.draw(single, *self.path.at((index, int(step))), seconds)
            total += single
        return total / np.float32(count)


def render(
    tag: str, traits: Traits, seeds: np.random.SeedSequence, *, frames: int, size: tuple[int, int], fps: int
) -> Iterator[Shot]:
    """Render the frames of one video of class ``tag``; everything random comes from ``seeds``."""
    looks, moves, place, others, front, view = (np.random.default_rng(child) for child in seeds.spawn(6))
    width, height = size
    open_ = np.linspace(-0.5, 0.5, 9) * SHUTTER
    fine = np.clip((np.arange(frames)[:, None] + open_) / max(frames - 1, 1), 0, 1)
    coarse = np.arange(frames) / max(frames - 1, 1)
    palette = draw_palette(looks, near=traits.near)

    limits = (SIZES[0] * height, SIZES[1] * height)
    pixels = traits.size * height
    path = roam(moves, fine, size, size=pixels, style=traits.style, limits=limits)
    if traits.empty:
        path = leave(moves, path, fine, size, share=moves.uniform(0.2, 0.4), ramp=0.1)
    actor = make_actor(CLASSES[tag](looks), palette.object, pixels, mirrored=bool(looks.random() < 0.5))
    hero = _Moving(actor, path)

    contexts = [other for other in CONTEXTS if (traits.context if other == tag else place.random() < 0.08)]
    canvas = (int(width * CANVAS[0]), int(height * CANVAS[1]))
    background = paint_background(place, palette.background, *canvas, unit=height, contexts=contexts)
    camera = pan(view, coarse, size, canvas)
    light = lighting(view, coarse, size)
    noise = view.normal(0, view.uniform(1.0, 6.0), (height + 64, width + 64, 3)).astype(np.float32)
    focus = view.uniform(0.35, 0.75)

    cast = [_passer_by(others, fine, size) for _ in range(traits.distractors)]
    ahead = [bool(others.random() < 0.3) for _ in cast]
    foreground = _occluders(front, palette.background, canvas, camera, path) if traits.occluded else None

    whole = actor.area(1.0)
    for index in range(frames):
        seconds = index / fps
        matrix = camera.matrix(index)
        image = cv2.warpAffine(
            background, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REFLECT_101
        )
        for passer, is_ahead in zip(cast, ahead, strict=True):
            if not is_ahead:
                image = _lay(image, passer.layer(index, seconds, size))
        own = hero.layer(index, seconds, size)
        image = _lay(image, own)
        before = np.zeros((height, width, 4), np.float32)
        for passer, is_ahead in zip(cast, ahead, strict=True):
            if is_ahead:
                before = _stack(before, passer.layer(index, seconds, size))
        if foreground is not None:
            matrix = camera.matrix(index, PARALLAX)
            before = _stack(
                before, cv2.warpAffine(foreground, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
            )
        image = _lay(image, before)
        box, hidden = true_box(own[..., 3], before[..., 3], whole * float(path.size[index].mean()) ** 2)
        corner = view.integers(0, 64, 2)
        grain = noise[corner[0] : corner[0] + height, corner[1] : corner[1] + width]
        yield Shot(_expose(image, light, index, grain, focus), box, hidden)


def true_box(own: Array, before: Array, whole: float) -> tuple[Box | None, float]:
    """The box of an object from its alpha mask, and the share of it that is hidden.

    The object's pixels are those that it covers by half or more. Of those inside the frame, the hidden ones lie under
    something at least half opaque. Where less than 30 % is hidden, the box holds the object's whole extent inside the
    frame, as a person would draw it; otherwise only what is visible. There is no box where fewer than 25 pixels or
    less than 6 % of the whole object (inside or outside the frame) are visible.

    Args:
        own: the object's opacity (h, w), as if nothing stood before it.
        before: opacity (h, w) of what stands before it.
        whole: pixels that the whole object would cover on an endless frame.

    Returns:
        The box, whose right and lower sides are the outer edges of the last pixels, or None; the hidden share.
    """
    inside = own >= 0.5
    visible = inside & (before < 0.5)
    covered, seen = int(inside.sum()), int(visible.sum())
    hidden = 1 - seen / covered if covered else 0.0
    if seen < max(25, 0.06 * whole):
        return None, hidden
    mask = inside if hidden < 0.3 else visible
    columns, rows = np.flatnonzero(mask.any(0)), np.flatnonzero(mask.any(1))
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)), hidden


def _passer_by(rng: np.random.Generator, time: npt.NDArray[np.float64], frame: tuple[int, int]) -> _Moving:
    size = frame[1] * float(np.exp(rng.uniform(np.log(0.12), np.log(0.42))))
    path = roam(rng, time, frame, size=size, style=str(rng.choice(list(STYLES))), limits=(0.7 * size, 1.4 * size))
    actor = make_actor(distractor(rng), object_colours(rng, rng.uniform(0, 360)), size)
    return _Moving(actor, path)


def _occluders(rng: np.random.Generator, colours: Array, canvas: tuple[int, int], camera: Camera, path: Path) -> Array:
    """Things in the foreground that the object passes behind at some time."""
    frames = len(path.size)
    moment = int(frames * rng.uniform(0.1, 0.9))
    matrix = camera.matrix(moment, PARALLAX)
    target = matrix @ [*np.clip(path.position[moment, 0], 0, camera.frame), 1]
    return paint_foreground(rng, colours, *canvas, target=target, size=float(path.size[moment, 0]))


def _lay(image: Array, layer: Array) -> Array:
    return image * (1 - layer[..., 3:]) + layer[..., :3]


def _stack(below: Array, above: Array) -> Array:
    return below * (1 - above[..., 3:]) + above


def _expose(image: Array, light: Light, index: int, grain: Array, focus: float) -> npt.NDArray[np.uint8]:
    """The picture as a camera records it: light, lens, sensor."""
    image = cv2.GaussianBlur(image, (0, 0), focus) * light.shade[index][..., None]
    levels = np.clip(np.linspace(0, 1, 256)[:, None] * light.gain[index], 0, 1) ** light.gamma * 255
    coded = np.clip(image * 255 + 0.5, 0, 255).astype(np.uint8)
    exposed = cv2.LUT(coded, levels.astype(np.float32)[None])
    return np.clip(exposed + grain + 0.5, 0, 255).astype(np.uint8)
