"""YouTube-Objects v1.0 and v2.2: the archives as distributed, and frames in folders with the literature's lists."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from colocam.data.truth import Index, Truth
from colocam.data.youtube_objects.layouts import (
    CLASSES,
    Notes,
    Shot,
    find_lists,
    is_v1,
    is_v2,
    read_lists,
    read_v1,
    read_v2,
    val_videos,
)
from colocam.data.youtube_objects.mat_file import Corners
from colocam.errors import ArgumentError, ColocamError
from colocam.types import Box, Clip
from colocam.video.images import image_size

__all__ = ["CLASSES", "PUBLISHED", "read_archive"]

VAL_VIDEOS: dict[str, int] = {"1.0": 5, "2.2": 3}
"""Validation videos of each class in the literature."""
FIRST_PIXEL: dict[str, int] = {"1.0": 0, "2.2": 1}
_COUNTED = "train shots", "train videos", "val frames", "val boxes", "val videos", "test frames", "test boxes"
PUBLISHED: dict[str, dict[str, int]] = {
    "1.0": dict(zip((*_COUNTED, "test videos"), (2768, 78, 325, 347, 50, 346, 396, 27), strict=True)),
    "2.2": dict(zip((*_COUNTED, "test videos"), (1289, 76, 1177, 1177, 30, 1781, 2667, 49), strict=True)),
}
"""Sizes of the splits in the literature; val and test are counted in labeled frames and their boxes."""


def read_archive(
    root: Annotated[Path, "Folder of the archive, with one folder per class in it."],
    *,
    version: Annotated[str, "Version of the archive: 1.0 or 2.2."],
    lists: Annotated[Path | None, "Folder of split lists, for the validation videos.", "--val-lists"] = None,
    seed: Annotated[int, "Seed of the sampled validation videos, where no list names them."] = 0,
) -> Index:
    """Read YouTube-Objects as distributed, or with frames in folders per shot and split lists.

    Args:
        root: the folder with one folder per class in it.
        version: ``1.0`` or ``2.2``.
        lists: folder of split lists. An archive as distributed takes its validation videos from there; frames in
            folders take all splits, also from lists found below ``root``.
        seed: of the sampled validation videos, where there are no lists.

    Raises:
        ColocamError: the layout is not recognized, or a file of it is missing or broken.
    """
    if version not in PUBLISHED:
        raise ArgumentError("version", f"must be one of {', '.join(PUBLISHED)}, got {version}")
    if not root.is_dir():
        raise ColocamError(f"{root}: there is no such folder")
    if lists is not None and not lists.is_dir():
        raise ColocamError(f"{lists}: there is no such folder of split lists")
    there = {"1.0": is_v1(root), "2.2": is_v2(root)}
    notes, sampled = Notes(), there[version] and lists is None
    if there[version]:
        layout = "as distributed"
        read = read_v1 if version == "1.0" else read_v2
        shots = [shot for tag in CLASSES if (root / tag).is_dir() for shot in read(root, tag, notes)]
        if not shots:
            raise ColocamError(
                f"{root}: none of its class folders has a frame ({', '.join(CLASSES)}): give the folder that holds them"
            )
        if lists is None:
            shots = sample_validation(shots, VAL_VIDEOS[version], seed, notes)
        else:
            shots = listed_validation(shots, val_videos(lists), notes)
    else:
        found = lists or find_lists(root, version)
        if found is None:
            raise ColocamError(f"{root}: {_unknown_layout(version, other=any(there.values()))}")
        layout = f"with the split lists of {found}"
        shots = read_lists(root, found, notes)
    for tag in sorted(set(CLASSES) - {shot.tag for shot in shots}):
        notes.add("classes missing", tag)
    clips, truth, sizes = _clips(shots, FIRST_PIXEL[version], notes)
    validation = f"sampled with seed {seed}" if sampled else "from the list"
    hint = "train shots, val frames and val boxes depend on the sampled videos; the published ones need a list"
    return Index(
        clips,
        truth,
        sizes,
        name=f"youtube-objects-{version}",
        summary=f"YouTube-Objects v{version}, {layout}; validation videos {validation}",
        notes=(*notes.lines(), *([hint] if sampled else [])),
        published=PUBLISHED[version],
    )


def _clips(
    shots: list[Shot], first_pixel: int, notes: Notes
) -> tuple[tuple[Clip, ...], Truth, dict[tuple[str, int], tuple[int, int]]]:
    """Whole training shots; of val and test only the frames with a box, since no other frame is evaluated."""
    clips: list[Clip] = []
    frames: dict[str, dict[int, list[Box]]] = {}
    sizes: dict[tuple[str, int], tuple[int, int]] = {}
    for shot in shots:
        kept = shot.frames
        if shot.split != "train":
            boxes, kept_sizes = _labeled(shot, first_pixel, notes)
            kept = tuple(frame for frame in shot.frames if frame in boxes)
            if not kept:
                continue
            frames[shot.name] = {index: boxes[frame] for index, frame in enumerate(kept)}
            sizes |= {(shot.name, index): kept_sizes[frame] for index, frame in enumerate(kept)}
        clips.append(Clip(shot.name, shot.tag, shot.split, kept[0].parent, shot.video, frames=kept))
    return tuple(clips), Truth(frames), sizes


def _labeled(shot: Shot, first: int, notes: Notes) -> tuple[dict[Path, list[Box]], dict[Path, tuple[int, int]]]:
    boxes, sizes = {}, {}
    for frame, corners in shot.labels.items():
        if not len(corners):
            notes.add("labels without a box left out", frame)
        elif (size := image_size(frame)) is None:
            notes.add("labeled frames left out, which are no readable image", frame)
        elif usable := correct_boxes(corners, size, frame, notes, first=first, drawn_on=shot.drawn_on.get(frame)):
            boxes[frame], sizes[frame] = usable, size
    return boxes, sizes


def _unknown_layout(version: str, *, other: bool) -> str:
    expected = "<class>/data and <class>/sets" if version == "1.0" else "<class>, Ranges and GroundTruth"
    if other:
        return f"not version {version} ({expected}) but the other one: change `version`"
    return f"neither version {version} as distributed ({expected}) nor frames with split lists, which `lists` names"


def correct_boxes(
    corners: Corners,
    size: tuple[int, int],
    frame: Path,
    notes: Notes,
    *,
    first: int,
    drawn_on: tuple[float, float] | None = None,
) -> list[Box]:
    """Return the usable boxes of one frame.

    Swapped corners are put in order; corners outside the frame are moved to its first or last pixel; a box without
    width or height is left out. Each correction is noted.

    Args:
        corners: (k, 4) as the archive has them.
        size: width and height of the stored frame.
        frame: the image file, for the notes.
        notes: takes a note of each correction.
        first: coordinate of the first pixel, 1 in version 2.2.
        drawn_on: width and height of the frame that the corners refer to, by default ``size``.
    """
    last, scale = np.array(size) - 1, np.array(size) / (drawn_on or size)
    corners = (corners - first) * np.tile(scale, 2)
    lower = np.minimum(corners[:, :2], corners[:, 2:])
    upper = np.maximum(corners[:, :2], corners[:, 2:])
    boxes = np.concatenate([lower.clip(0, last), upper.clip(0, last)], axis=1)
    finite = np.isfinite(corners).all(axis=1)
    usable = finite & (boxes[:, :2] < boxes[:, 2:]).all(axis=1)
    found = {
        "boxes scaled from the size that a list gives to that of the stored frame": finite & (scale != 1).any(),
        "boxes left out, which are not numbers": ~finite,
        "boxes with swapped corners put in order": finite & (lower != corners[:, :2]).any(axis=1),
        "boxes with negative corners clipped to 0": finite & (lower < 0).any(axis=1),
        "boxes that pass the right or bottom edge clipped to the last pixel": finite & (upper > last).any(axis=1),
        "boxes left out, which have no area inside the frame": finite & ~usable,
    }
    for kind, noted in found.items():
        for _ in range(np.count_nonzero(noted)):
            notes.add(kind, frame)
    return [Box(*box) for box in boxes[usable].tolist()]


def sample_validation(shots: Sequence[Shot], count: int, seed: int, notes: Notes) -> list[Shot]:
    """Put ``count`` random training videos of each class into val, those with boxes first.

    Each class is sampled by itself, so that its videos do not depend on the other classes. At least one video of a
    class stays in train.
    """
    labeled: dict[str, dict[str, bool]] = defaultdict(dict)
    for shot in shots:
        if shot.split == "train":
            labeled[shot.tag][shot.video] = labeled[shot.tag].get(shot.video, False) or bool(shot.labels)
    chosen: set[str] = set()
    for tag, videos in labeled.items():
        generator = np.random.default_rng([seed, CLASSES.index(tag)])
        names = [sorted(videos)[index] for index in generator.permutation(len(videos)).tolist()]
        names.sort(key=lambda name: not videos[name])  # a stable sort keeps the random order within each half
        if len(names) <= count:
            notes.add(f"classes with too few training videos for {count} of validation", f"{tag}, {len(names)}")
        chosen.update(names[: min(count, len(names) - 1)])
    return _into_val(shots, chosen)


def listed_validation(shots: Sequence[Shot], videos: Iterable[tuple[str, int]], notes: Notes) -> list[Shot]:
    """Put the training videos (class, number) into val."""
    numbers = {shot.video: (shot.tag, int(shot.video.rpartition("/")[2].removeprefix("video-"))) for shot in shots}
    wanted = set(videos)
    chosen = {video for video, number in numbers.items() if number in wanted}
    for tag, number in sorted(wanted - set(numbers.values())):
        notes.add("videos of the validation list that are not there", f"{tag}, {number}")
    for video in sorted({shot.video for shot in shots if shot.split == "test"} & chosen):
        notes.add("videos of the validation list that are test videos and stay in test", video)
    return _into_val(shots, chosen)


def _into_val(shots: Sequence[Shot], videos: set[str]) -> list[Shot]:
    return [replace(s, split="val") if s.split == "train" and s.video in videos else s for s in shots]
