"""A small world of tagged videos, made from a seed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colocam.data.video import VideoWriter
from colocam.data.world.classes import CLASSES
from colocam.data.world.scene import draw_traits, render
from colocam.files import write_text
from colocam.progress import progress
from colocam.types import SPLITS


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
    videos_per_class: tuple[int, int, int] = (8, 3, 4),
    frames: int = 48,
    size: tuple[int, int] = (192, 144),
    fps: int = 12,
) -> World:
    """Write tagged videos of six classes to ``folder``; the same arguments give the same bytes."""
    world = World(folder / "videos", folder / "manifest.csv", folder / "truth.csv")
    manifest, truth = ["path,tag,split,clip"], ["clip,frame,present,x1,y1,x2,y2"]
    jobs = [
        (tag_index, tag, split_index, split, index)
        for tag_index, tag in enumerate(CLASSES)
        for split_index, split in enumerate(SPLITS)
        for index in range(videos_per_class[split_index])
    ]
    with progress("making videos", len(jobs), unit="videos") as advance:
        for tag_index, tag, split_index, split, index in jobs:
            clip = f"{tag}/{split}-{index:02d}"
            phases = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(tag_index, split_index))).random(7)
            seeds = np.random.SeedSequence(seed, spawn_key=(tag_index, split_index, index))
            shots = render(tag, draw_traits(phases, index), seeds, frames=frames, size=size, fps=fps)
            with VideoWriter(world.videos / f"{clip}.mp4", *size, fps) as video:
                for number, shot in enumerate(shots):
                    video.write(shot.image)
                    box = ",".join(f"{side:g}" for side in shot.box) if shot.box else ",,,"
                    truth.append(f"{clip},{number},{int(shot.box is not None)},{box}")
            manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
            advance()
    write_text(world.truth, "\n".join(truth) + "\n")
    write_text(world.manifest, "\n".join(manifest) + "\n")
    return world
