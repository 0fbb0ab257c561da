"""List the videos of a collection with their tags and splits, without opening any video."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from colocam.config.card import LONGEST_TAG
from colocam.data.folders import read_folder
from colocam.data.manifest import read_manifest
from colocam.errors import ArgumentError, ColocamError
from colocam.types import Clip, Split
from colocam.video.images import natural_key


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All clips of a collection.

    Attributes:
        clips: in the natural order of their names.
        tags: the classes, sorted; the index of a class counts from 0.
    """

    clips: tuple[Clip, ...]
    tags: tuple[str, ...]

    def of(self, split: Split) -> tuple[Clip, ...]:
        """Return the clips of one split."""
        return tuple(clip for clip in self.clips if clip.split == split)


def read_catalogue(source: Path, *, val_fraction: float = 0.2, seed: int = 0) -> Catalogue:
    """Read a collection of tagged videos.

    Args:
        source: one of

            - a folder ``VIDEOS/<tag>/<video file or folder of images>``; instead of a video there may be a folder of
              its shots; ``VIDEOS/test/<tag>/…`` and ``VIDEOS/val/<tag>/…`` beside the tags are splits, the rest may be
              in ``VIDEOS/train/<tag>/…``;
            - a CSV or parquet table with path and tag, optionally split, video, clip (a name), start, end (seconds),
              and pictures (the images of a folder that belong to the clip: ``a.jpg;c.jpg..f.jpg``);
            - a table of images with frame (a path), class or tag, video, shot, optionally split.

            Paths in a table are relative to its folder.
        val_fraction: share of each tag's training videos for validation, where the source does not say which.
        seed: of the random choice of those videos.

    Raises:
        ColocamError: there is nothing to learn from, or the source contradicts itself.
    """
    if source.is_dir():
        clips, has_val = read_folder(source)
    elif not source.exists():
        raise ColocamError(f"{source}: there is no such folder or manifest")
    elif source.suffix.lower() in {".csv", ".parquet"}:
        clips, has_val = read_manifest(source)
    else:
        raise ColocamError(
            f"{source}: give a folder of tagged videos, or a manifest whose name ends in .csv or .parquet"
        )
    clips.sort(key=lambda clip: natural_key(clip.name))
    tags = tuple(sorted({clip.tag for clip in clips}))
    if len(tags) < 2:
        raise ColocamError(f"{source}: the only tag is {tags[0]!r}: training needs at least two tags")
    if len(longest := max(tags, key=len)) > LONGEST_TAG:
        raise ColocamError(f"{source}: a tag has {len(longest)} characters, at most {LONGEST_TAG}: {longest[:40]!r}…")
    _check_splits(source, clips)
    if not has_val:
        clips = _split_by_video(source, clips, val_fraction, seed)
    return Catalogue(tuple(clips), tags)


def _check_splits(source: Path, clips: Iterable[Clip]) -> None:
    splits: dict[str, Split] = {}
    for clip in clips:
        first = splits.setdefault(clip.video, clip.split)
        if first != clip.split:
            raise ColocamError(
                f"{source}: the video {clip.video!r} is in both {first} and {clip.split}: put its clips into one split"
            )


def _split_by_video(source: Path, clips: list[Clip], val_fraction: float, seed: int) -> list[Clip]:
    """Choose ``val_fraction`` of each tag's training videos for validation at random, at least one and never all."""
    if not 0 < val_fraction < 1:
        raise ArgumentError("val_fraction", f"must be between 0 and 1, got {val_fraction}")
    videos: dict[str, dict[str, None]] = defaultdict(dict)
    for clip in clips:
        if clip.split == "train":
            videos[clip.tag][clip.video] = None
    generator = np.random.default_rng(seed)
    chosen: set[str] = set()
    for tag in sorted(videos):
        names = list(videos[tag])
        if len(names) == 1:
            raise ColocamError(
                f"{source}: the tag {tag!r} has a single video ({names[0]}), which cannot be split into training and "
                "validation: add another video, or name the splits in a manifest"
            )
        count = min(max(round(val_fraction * len(names)), 1), len(names) - 1)
        chosen.update(names[index] for index in generator.permutation(len(names))[:count].tolist())
    if lost := [tag for tag in sorted(videos) if chosen.issuperset(videos[tag])]:
        raise ColocamError(
            f"{source}: all videos of {lost[0]!r} were chosen for validation, since they also carry other tags: "
            "name the splits in a manifest"
        )
    return [replace(clip, split="val") if clip.video in chosen else clip for clip in clips]
