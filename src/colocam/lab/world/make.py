"""Make the demo's tagged videos from a seed."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colocam.errors import ColocamError
from colocam.lab.world.classes import CLASSES
from colocam.lab.world.scene import SIZES, Traits, draw_traits, render
from colocam.types import SPLITS, Split
from colocam.utils.files import explain_os_errors, write_json, write_text
from colocam.utils.progress import progress
from colocam.video.writer import VideoWriter

FORMAT = 1
"""Increased whenever the same arguments give other videos."""


@dataclass(frozen=True, slots=True)
class World:
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
    objects: int = 1,
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
        objects: objects of the class in each video, smaller by the square root of their number; each has its own row
            in the table of true boxes.
    """
    recipe: dict[str, int | list[int]] = {
        "format": FORMAT,
        "seed": seed,
        "videos_per_class": list(videos_per_class),
        "frames": frames,
        "size": list(size),
        "fps": fps,
        **({"objects": objects} if objects != 1 else {}),
    }
    _check(recipe)
    world = World(folder / "videos", folder / "manifest.csv", folder / "truth.csv")
    if _claim(folder, recipe) and world.manifest.exists():
        return world
    manifest, truth = ["path,tag,split,clip"], ["clip,frame,present,x1,y1,x2,y2"]
    videos = [
        (tag, split, index)
        for tag in CLASSES
        for split, count in zip(SPLITS, videos_per_class, strict=True)
        for index in range(count)
    ]
    with progress("making videos", len(videos), unit="videos") as advance:
        for tag, split, index in videos:
            clip = f"{tag}/{split}-{index:02d}"
            with VideoWriter(world.videos / f"{clip}.mp4", *size, fps) as video:
                traits = _traits(seed, tag, split, index)
                traits = replace(traits, objects=objects, size=max(SIZES[0], traits.size / objects**0.5))
                seeds = np.random.SeedSequence(seed, spawn_key=(*_group(tag, split), index))
                shots = render(tag, traits, seeds, frames=frames, size=size, fps=fps)
                for number, shot in enumerate(shots):
                    video.write(shot.image)
                    there = [box for box in (shot.box, *shot.others) if box]
                    boxes = [",".join(f"{side:g}" for side in box) for box in there]
                    truth += [f"{clip},{number},1,{box}" for box in boxes] or [f"{clip},{number},0,,,,"]
            manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
            advance()
    write_text(world.truth, "\n".join(truth) + "\n")
    write_text(world.manifest, "\n".join(manifest) + "\n")
    return world


def _group(tag: str, split: Split) -> tuple[int, int]:
    return list(CLASSES).index(tag), SPLITS.index(split)


def _traits(seed: int, tag: str, split: Split, index: int) -> Traits:
    phases = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_group(tag, split))).random(7)
    return draw_traits(phases, index)


def _check(recipe: dict[str, int | list[int]]) -> None:
    least = {"seed": 0, "videos_per_class": 0, "frames": 1, "size": 32, "fps": 1, "objects": 1}
    for name, smallest in least.items():
        value = recipe.get(name, smallest)
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
            found = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            found = None
    if found != recipe:
        raise ColocamError(f"{folder} holds another world, see {note.name}: choose another folder or remove it")
    return True
