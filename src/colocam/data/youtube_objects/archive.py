"""From an archive in any of its layouts to an index."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from colocam.data.index import Index
from colocam.data.truth import Truth
from colocam.data.youtube_objects.boxes import mend_boxes
from colocam.data.youtube_objects.lists import find_lists, read_lists, val_videos
from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot, Version
from colocam.data.youtube_objects.split import VAL_VIDEOS, draw_validation, given_validation
from colocam.data.youtube_objects.v1 import is_v1, read_v1
from colocam.data.youtube_objects.v2 import is_v2, read_v2
from colocam.errors import ColocamError
from colocam.types import Box, Clip
from colocam.video.images import picture_size

FIRST_PIXEL: dict[Version, int] = {"1.0": 0, "2.2": 1}


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read.

    Attributes:
        index: clips and boxes of all splits.
        layout: how the archive lies on disk, in words.
        drawn: whether the validation videos are a random draw, not those of a list.
        notes: a line for everything odd.
    """

    index: Index
    layout: str
    drawn: bool
    notes: list[str] = field(default_factory=list)


def read_archive(root: Path, version: str, *, lists: Path | None = None, seed: int = 0) -> Archive:
    """Read YouTube-Objects as distributed, or with frames in folders per shot and split lists.

    Args:
        root: the folder with one folder per class in it.
        version: ``1.0`` or ``2.2``.
        lists: folder of split lists. An archive as distributed takes its validation videos from there; frames in
            folders take all splits, also from lists found below ``root``.
        seed: draws the validation videos where there are no lists.

    Raises:
        ColocamError: the layout is not recognised, or a file of it is missing or broken.
    """
    chosen = next((name for name in get_args(Version) if name == version), None)
    if chosen is None:
        raise ColocamError(f"--version {version}: give one of {', '.join(get_args(Version))}")
    if not root.is_dir():
        raise ColocamError(f"{root}: there is no such folder")
    if lists is not None and not lists.is_dir():
        raise ColocamError(f"{lists}: there is no such folder of split lists")
    there = {"1.0": is_v1(root), "2.2": is_v2(root)}
    notes = Notes()
    if there[chosen]:
        shots = read_v1(root, notes) if chosen == "1.0" else read_v2(root, notes)
        if not shots:
            raise ColocamError(f"{root}: no frame in any folder of a class ({', '.join(CLASSES)})")
        if lists is None:
            shots = draw_validation(shots, VAL_VIDEOS[chosen], seed, notes)
        else:
            shots = given_validation(shots, val_videos(lists), notes)
        layout, drawn = "as distributed", lists is None
    else:
        found = lists or find_lists(root, chosen)
        if found is None:
            raise ColocamError(_unknown_layout(root, chosen, other=any(there.values())))
        shots, layout, drawn = read_lists(root, found, notes), f"with the split lists of {found}", False
    for tag in sorted(set(CLASSES) - {shot.tag for shot in shots}):
        notes.add("classes missing", tag)
    return Archive(_index(shots, FIRST_PIXEL[chosen], notes), layout, drawn, notes.lines())


def _index(shots: list[Shot], first_pixel: int, notes: Notes) -> Index:
    """Whole shots to learn from; of the others the frames with a box, since nothing else of them is looked at."""
    clips: list[Clip] = []
    frames: dict[str, dict[int, list[Box]]] = {}
    sizes: dict[tuple[str, int], tuple[int, int]] = {}
    for shot in shots:
        kept = shot.frames
        if shot.split != "train":
            boxes, kept_sizes = _labelled(shot, first_pixel, notes)
            kept = tuple(frame for frame in shot.frames if frame in boxes)
            if not kept:
                continue
            frames[shot.name] = {place: boxes[frame] for place, frame in enumerate(kept)}
            sizes |= {(shot.name, place): kept_sizes[frame] for place, frame in enumerate(kept)}
        clips.append(Clip(shot.name, shot.tag, shot.split, kept[0].parent, shot.video, frames=kept))
    return Index(tuple(clips), Truth(frames), sizes)


def _labelled(shot: Shot, first: int, notes: Notes) -> tuple[dict[Path, list[Box]], dict[Path, tuple[int, int]]]:
    boxes, sizes = {}, {}
    for frame, corners in shot.labels.items():
        if not len(corners):
            notes.add("labels without a box left out", frame)
        elif (size := picture_size(frame)) is None:
            notes.add("labelled frames left out, which are no readable picture", frame)
        elif mended := mend_boxes(corners, size, frame, notes, first=first, drawn_on=shot.drawn_on.get(frame)):
            boxes[frame], sizes[frame] = mended, size
    return boxes, sizes


def _unknown_layout(root: Path, version: Version, *, other: bool) -> str:
    expected = {
        "1.0": "<class>/data and <class>/sets",
        "2.2": "<class>, Ranges and GroundTruth",
    }[version]
    if other:
        return f"{root}: not version {version} ({expected}) but the other one: change --version"
    return f"{root}: neither version {version} as distributed ({expected}) nor frames with split lists (see --lists)"
