"""Make the demo's tagged videos from a seed: render each video, with the true boxes of each frame in a table."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.demo.figures import CLASSES, CONTEXTS, distractor
from colocam.demo.motion import STYLES, Camera, Light, Route, Size, leave, lighting, pan, roam
from colocam.demo.painting import Actor, lay, make_actor, paint_background, paint_foreground
from colocam.demo.textures import Array, Palette, as_float, draw_palette, object_colors
from colocam.errors import ColocamError
from colocam.types import SPLITS, Box, Float64Array, Split
from colocam.utils.device import cores
from colocam.utils.files import explain_os_errors, write_json, write_text
from colocam.utils.progress import progress
from colocam.video.writer import VideoWriter

Image = npt.NDArray[np.uint8]
Rng = np.random.Generator

FORMAT = 1
"""Increased whenever the same arguments give other videos."""
SIZES = (0.28, 0.88)
"""Least and greatest size of an object (geometric mean of width and height), as a share of the frame's height."""
CANVAS = (1.9, 1.6)
"""Width and height of the background, in frames."""
PARALLAX = 1.5
"""Speed of the foreground relative to the background."""
SHUTTER = 0.5
"""The share of a frame's time in which the shutter is open: the longer, the more motion blur."""
EXPOSURES = 7
"""Number of poses while the shutter is open."""
IN_FRONT = 0.3
"""Share of the distractors that pass in front of the object."""
FOREIGN_CONTEXT = 0.08
"""Probability that the context of another class appears."""
SLACK = 64
"""Each frame takes its sensor noise from a random crop of a field this many pixels larger than the frame."""
COVERED = 0.4
"""Opacity from which a pixel counts as the object's; below one half, so that thin legs in motion still count."""
MOSTLY_SEEN = 0.3
"""Hidden share below which the box encloses the whole object, as an annotator would draw it."""
FEWEST_PIXELS = 25
SMALLEST_SHARE = 0.06


class World(NamedTuple):
    """Paths of a world: the videos by tag, the manifest of tags and splits, and the true boxes."""

    videos: Path
    manifest: Path
    truth: Path


def make_world(
    folder: Path,
    *,
    seed: int = 0,
    videos_per_class: tuple[int, int, int] = (20, 4, 6),
    frames: int = 32,
    size: tuple[int, int] = (192, 144),
    fps: int = 12,
) -> World:
    """Write tagged videos of six classes and a table of true boxes; the same arguments give the same bytes.

    A video depends only on the seed, its class, split and index, so a larger world contains the smaller one. An
    existing world is not changed, an interrupted one is completed.

    Args:
        folder: gets ``videos/<tag>/<split>-<number>.mp4``, ``manifest.csv`` (path, tag, split, clip) and ``truth.csv``
            (clip, frame, present, x1, y1, x2, y2: every frame of every video, in pixels).
        seed: of everything random, from 0.
        videos_per_class: for train, val and test.
        frames: per video.
        size: width and height in pixels.
        fps: frames per second.
    """
    recipe: dict[str, int | list[int]] = {
        "format": FORMAT,
        "seed": seed,
        "videos_per_class": list(videos_per_class),
        "frames": frames,
        "size": list(size),
        "fps": fps,
    }
    _check(recipe)
    world = World(folder / "videos", folder / "manifest.csv", folder / "truth.csv")
    if _claim(folder, recipe) and world.manifest.exists():
        return world
    videos = [
        (tag, split, index)
        for tag in CLASSES
        for split, count in zip(SPLITS, videos_per_class, strict=True)
        for index in range(count)
    ]
    manifest, truth = ["path,tag,split,clip"], ["clip,frame,present,x1,y1,x2,y2"]
    with progress("making videos", len(videos), unit="videos") as advance:

        def make(tag: str, split: Split, index: int) -> list[str]:
            group = (list(CLASSES).index(tag), SPLITS.index(split))
            phases = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=group)).random(7)
            seeds = np.random.SeedSequence(seed, spawn_key=(*group, index))
            shots = render(tag, draw_traits(phases, index), seeds, frames=frames, size=size, fps=fps)
            rows, clip = [], _clip(tag, split, index)
            with VideoWriter(world.videos / f"{clip}.mp4", *size, fps) as video:
                for number, shot in enumerate(shots):
                    video.write(shot.image)
                    sides = ",,," if shot.box is None else ",".join(f"{side:g}" for side in shot.box)
                    rows.append(f"{clip},{number},{int(shot.box is not None)},{sides}")
            advance()
            return rows

        # A pool of its own: if this is interrupted, it ends with the videos that are being written.
        with ThreadPoolExecutor(cores()) as pool:
            made = list(pool.map(make, *zip(*videos, strict=True)))
        for (tag, split, index), rows in zip(videos, made, strict=True):
            clip = _clip(tag, split, index)
            manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
            truth += rows
    write_text(world.truth, "\n".join(truth) + "\n")
    write_text(world.manifest, "\n".join(manifest) + "\n")
    return world


def _clip(tag: str, split: Split, index: int) -> str:
    return f"{tag}/{split}-{index:02d}"


def _check(recipe: dict[str, int | list[int]]) -> None:
    for name, smallest in {"seed": 0, "videos_per_class": 0, "frames": 1, "size": 32, "fps": 1}.items():
        value = recipe[name]
        if min(value if isinstance(value, list) else [value]) < smallest:
            raise ColocamError(f"{name} must be at least {smallest}, got {value}")


def _claim(folder: Path, recipe: dict[str, int | list[int]]) -> bool:
    """Write to ``folder`` which world it holds; True if the same world was started there before."""
    note = folder / "world.json"
    with explain_os_errors(note):
        if not note.exists():
            write_json(note, recipe)
            return False
        try:
            stored = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
    if stored != recipe:
        raise ColocamError(f"{folder} contains a different world, see {note.name}: choose another folder or remove it")
    return True


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a video.

    Attributes:
        near: the background has about the object's color.
        empty: the object is away for a while.
        occluded: the object passes behind things in the foreground.
        context: the texture that goes with the class is about.
        distractors: how many things of no class move about.
        size: mean size of the object, as a share of the frame's height.
        style: how the object travels, see ``motion.STYLES``.
    """

    near: bool
    empty: bool
    occluded: bool
    context: bool
    distractors: int
    size: float
    style: str


def draw_traits(phases: Float64Array, index: int) -> Traits:
    """Traits of video ``index``, evenly spread over the first n videos for every n, so that small sets are balanced.

    A Kronecker sequence: trait i of video k follows from ``(phases_i + k·√p_i) mod 1``, p_i a prime. ``phases`` (7,)
    in 0–1 differ by class and split.
    """
    near, empty, occluded, context, company, size, style = (phases + index * np.sqrt([5, 2, 3, 7, 11, 13, 17])) % 1
    low, high = np.log(1.5 * SIZES[0]), np.log(0.95 * SIZES[1])
    return Traits(
        near=bool(near < 0.2),
        empty=bool(empty < 0.25),
        occluded=bool(occluded < 0.4),
        context=bool(context < 0.6),
        distractors=int(np.searchsorted([0.15, 0.5, 0.85], company)),
        size=float(np.exp(low + (high - low) * size**0.7)),
        style=list(STYLES)[int(np.searchsorted(np.cumsum([kind.share for kind in STYLES.values()])[:-1], style))],
    )


class Shot(NamedTuple):
    """One rendered frame (h, w, 3), RGB, and the object's true box in pixels, None where it is not to be seen."""

    image: Image
    box: Box | None


def render(
    tag: str, traits: Traits, seeds: np.random.SeedSequence, *, frames: int, size: Size, fps: int
) -> Iterator[Shot]:
    """Render the frames of one video of class ``tag``; everything random comes from ``seeds``."""
    looks, moves, place, others, front, view = (np.random.default_rng(child) for child in seeds.spawn(6))
    shutter = np.linspace(-0.5, 0.5, EXPOSURES) * SHUTTER
    time = np.clip(np.arange(frames)[:, None] + shutter, 0, max(frames - 1, 1)) / fps
    palette = draw_palette(looks, near=traits.near)
    hero = _hero(looks, moves, tag, traits, time, size, palette.object)
    cast = [_passer_by(others, time, size) for _ in range(traits.distractors)]
    ahead = [bool(others.random() < IN_FRONT) for _ in cast]

    width, height = size
    canvas = (int(width * CANVAS[0]), int(height * CANVAS[1]))
    contexts = [other for other in CONTEXTS if (traits.context if other == tag else place.random() < FOREIGN_CONTEXT)]
    background = paint_background(place, palette.background, *canvas, unit=height, contexts=contexts)
    middle = time[:, EXPOSURES // 2]
    camera, light = pan(view, middle, size, canvas), lighting(view, middle, size)
    foreground = _foreground(front, palette, canvas, camera, hero.route) if traits.occluded else None
    noise = view.normal(0, view.uniform(1.0, 5.0), (height + SLACK, width + SLACK, 3)).astype(np.float32)
    focus = view.uniform(0.35, 0.75)
    area = hero.actor.area()

    for index in range(frames):
        seconds = index / fps
        image = _look(background, camera.matrix(index), size, cv2.BORDER_REFLECT_101)
        own_layer, before = np.zeros((2, height, width, 4), np.float32)
        for passer, is_ahead in zip(cast, ahead, strict=True):
            passer.draw(before if is_ahead else image, index, seconds)
        hero.draw(own_layer, index, seconds)
        if foreground is not None:
            lay(before, _look(foreground, camera.matrix(index, PARALLAX), size, cv2.BORDER_CONSTANT))
        lay(image, own_layer)
        lay(image, before)
        box = true_box(own_layer[..., 3], before[..., 3], area * float(hero.route.size[index].mean()) ** 2)
        x, y = view.integers(0, SLACK, 2)
        exposed = _expose(image[..., :3], light, index, noise[y : y + height, x : x + width], focus)
        yield Shot(exposed, box)


@dataclass(frozen=True, slots=True)
class _Moving:
    actor: Actor
    route: Route
    """Poses at (frames, exposures)."""

    def draw(self, layer: Array, index: int, seconds: float) -> None:
        """Lay one frame over ``layer`` (h, w, 4), blurred by its own motion while the shutter is open."""
        position, size, tilt = self.route.position[index], self.route.size[index], self.route.tilt[index]
        reach = self.actor.figure.reach * size.max()
        x1, y1 = np.maximum(np.floor(position.min(0) - reach), 0).astype(int)
        x2, y2 = np.maximum(np.ceil(position.max(0) + reach), 0).astype(int)
        region = layer[y1:y2, x1:x2]
        if region.size == 0:
            return
        travel = float(np.hypot(*(position[-1] - position[0])))
        count = int(np.clip(np.ceil(travel / 2), 1, EXPOSURES))
        total = np.zeros((*region.shape[:2], 4), np.float32)
        for step in np.linspace(0, EXPOSURES - 1, 2 * count + 1)[1::2].round().astype(int):
            exposure = total if count == 1 else np.zeros_like(total)
            self.actor.draw(exposure, position[step] - (x1, y1), float(size[step]), float(tilt[step]), seconds)
            if count > 1:
                total += exposure / np.float32(count)
        lay(region, total)


def _hero(looks: Rng, moves: Rng, tag: str, traits: Traits, time: Float64Array, frame: Size, colors: Array) -> _Moving:
    size = traits.size * frame[1]
    actor = make_actor(CLASSES[tag](looks), colors, size, mirrored=bool(looks.random() < 0.5))
    limits = SIZES[0] * frame[1], SIZES[1] * frame[1]
    route = roam(moves, time, frame, size=size, style=STYLES[traits.style], limits=limits)
    if traits.empty:
        route = leave(moves, route, time, frame, reach=actor.figure.reach)
    return _Moving(actor, route)


def _passer_by(rng: Rng, time: Float64Array, frame: Size) -> _Moving:
    size = frame[1] * float(np.exp(rng.uniform(np.log(0.12), np.log(0.42))))
    style = STYLES[str(rng.choice(list(STYLES)))]
    route = roam(rng, time, frame, size=size, style=style, limits=(0.7 * size, 1.4 * size))
    return _Moving(make_actor(distractor(rng), object_colors(rng, rng.uniform(0, 360)), size), route)


def _foreground(rng: Rng, palette: Palette, canvas: Size, camera: Camera, route: Route) -> Array:
    """Things in the foreground that the object passes behind at some time."""
    moment = int(len(route.size) * rng.uniform(0.1, 0.9))
    position = np.clip(route.position[moment, 0], 0, camera.frame)
    target = camera.matrix(moment, PARALLAX) @ [*position, 1]
    return paint_foreground(rng, palette.background, *canvas, target=target, size=float(route.size[moment, 0]))


def _look(canvas: Array, matrix: Float64Array, size: Size, border: int) -> Array:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return as_float(cv2.warpAffine(canvas, matrix, size, flags=flags, borderMode=border))


def _expose(image: Array, light: Light, index: int, grain: Array, focus: float) -> Image:
    """The image as a camera records it: lens, light, sensor."""
    image = as_float(cv2.GaussianBlur(image, (0, 0), focus))
    coded = np.clip(image * (255 * light.shade[index][..., None]) + 0.5, 0, 255).astype(np.uint8)
    levels = 255 * np.clip(np.linspace(0, 1, 256)[:, None] * light.gain[index], 0, 1) ** light.gamma
    exposed = cv2.LUT(coded, levels.astype(np.float32)[None]) + grain + 0.5
    return np.clip(as_float(exposed), 0, 255).astype(np.uint8)


def true_box(own: Array, before: Array, whole: float) -> Box | None:
    """The box of an object in pixels, None where too little of it is to be seen.

    Of the object's pixels inside the frame, those under something at least half opaque are hidden. Where less than
    30 % is hidden, the box holds the object's whole extent inside the frame; otherwise only what is visible. There is
    no box where fewer than 25 pixels, or less than 6 % of the whole object inside and outside the frame, are visible.

    Args:
        own: the object's opacity (h, w), as if nothing stood before it.
        before: opacity (h, w) of what stands before it.
        whole: pixels that the whole object would cover on an endless frame.

    Returns:
        x1, y1 are the outer edges of the first column and row, x2, y2 those of the last (last index + 1).
    """
    inside = own >= COVERED
    visible = inside & (before < 0.5)
    covered, seen = int(np.count_nonzero(inside)), int(np.count_nonzero(visible))
    if seen < max(FEWEST_PIXELS, SMALLEST_SHARE * whole):
        return None
    mask = inside if 1 - seen / covered < MOSTLY_SEEN else visible
    columns, rows = np.flatnonzero(mask.any(0)), np.flatnonzero(mask.any(1))
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))
