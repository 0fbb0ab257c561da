"""A small world of tagged videos, made from a seed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colocam.data.video import VideoWriter
from colocam.data.world.classes import CLASSES
from colocam.data.world.scene import Shot, draw_traits, render
from colocam.errors import ColocamError
from colocam.files import explain_os_errors, write_json, write_text
from colocam.progress import progress
from colocam.types import SPLITS, Split

FORMAT = 1
"""Raised whenever the same arguments give other videos."""


@dataclass(frozen=True, slots=True)
class World:
    """Where a made world lies: the videos by tag, the manifest of tags and splits, and apart from them the truth."""

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
    """Write tagged videos of six classes, with the true boxes apart; the same arguments give the same bytes.

    A video follows from the seed, its class, its split and its number alone: a larger world holds the smaller one. A
    world that is already there is left as it is, an interrupted one is finished.

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
                for number, shot in enumerate(_shots(seed, tag, split, index, frames=frames, size=size, fps=fps)):
                    video.write(shot.image)
                    box = ",".join(f"{side:g}" for side in shot.box) if shot.box else ",,,"
                    truth.append(f"{clip},{number},{int(shot.box is not None)},{box}")
            manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
            advance()
    write_text(world.truth, "\n".join(truth) + "\n")
    write_text(world.manifest, "\n".join(manifest) + "\n")
    return world


def _shots(
    seed: int, tag: str, split: Split, index: int, *, frames: int, size: tuple[int, int], fps: int
) -> Iterator[Shot]:
    group = (list(CLASSES).index(tag), SPLITS.index(split))
    phases = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=group)).random(7)
    seeds = np.random.SeedSequence(seed, spawn_key=(*group, index))
    return render(tag, draw_traits(phases, index), seeds, frames=frames, size=size, fps=fps)


def _check(recipe: dict[str, int | list[int]]) -> None:
    least = {"seed": 0, "videos_per_class": 0, "frames": 1, "size": 32, "fps": 1}
    for name, smallest in least.items():
        value = recipe[name]
        if min(value if isinstance(value, list) else [value]) < smallest:
            raise ColocamError(f"a world with {name} {value} cannot be made: give at least {smallest}")


def _claim(folder: Path, recipe: dict[str, int | list[int]]) -> bool:
    """Note in ``folder`` which world it holds; True where the same one was begun there before."""
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
