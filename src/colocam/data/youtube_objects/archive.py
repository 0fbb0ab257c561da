"""Read YouTube-Objects, in any layout, into an index."""

from pathlib import Path
from typing import Annotated, get_args

from colocam.data.index import Index
from colocam.data.truth import Truth
from colocam.data.youtube_objects.boxes import correct_boxes
from colocam.data.youtube_objects.lists import find_lists, read_lists, val_videos
from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot, Version
from colocam.data.youtube_objects.split import VAL_VIDEOS, listed_validation, sample_validation
from colocam.data.youtube_objects.v1 import is_v1, read_v1
from colocam.data.youtube_objects.v2 import is_v2, read_v2
from colocam.errors import ArgumentError, ColocamError
from colocam.types import Box, Clip
from colocam.video.images import image_size

FIRST_PIXEL: dict[Version, int] = {"1.0": 0, "2.2": 1}
_COUNTED = "train shots", "train videos", "val frames", "val boxes", "val videos", "test frames", "test boxes"
PUBLISHED: dict[Version, dict[str, int]] = {
    "1.0": dict(zip((*_COUNTED, "test videos"), (2768, 78, 325, 347, 50, 346, 396, 27), strict=True)),
    "2.2": dict(zip((*_COUNTED, "test videos"), (1289, 76, 1177, 1177, 30, 1781, 2667, 49), strict=True)),
}
"""Sizes of the splits in the literature; val and test are counted in labelled frames and their boxes."""


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
        ColocamError: the layout is not recognised, or a file of it is missing or broken.
    """
    chosen = next((name for name in get_args(Version) if name == version), None)
    if chosen is None:
        raise ArgumentError("version", f"must be one of {', '.join(get_args(Version))}, got {version}")
    if not root.is_dir():
        raise ColocamError(f"{root}: there is no such folder")
    if lists is not None and not lists.is_dir():
        raise ColocamError(f"{lists}: there is no such folder of split lists")
    there = {"1.0": is_v1(root), "2.2": is_v2(root)}
    notes = Notes()
    validation = "from the list"
    if there[chosen]:
        layout = "as distributed"
        shots = read_v1(root, notes) if chosen == "1.0" else read_v2(root, notes)
        if not shots:
            raise ColocamError(f"{root}: no frame in any folder of a class ({', '.join(CLASSES)})")
        if lists is None:
            validation = f"sampled with seed {seed}"
            shots = sample_validation(shots, VAL_VIDEOS[chosen], seed, notes)
        else:
            shots = listed_validation(shots, val_videos(lists), notes)
    else:
        found = lists or find_lists(root, chosen)
        if found is None:
            raise ColocamError(_unknown_layout(root, chosen, other=any(there.values())))
        layout = f"with the split lists of {found}"
        shots = read_lists(root, found, notes)
    for tag in sorted(set(CLASSES) - {shot.tag for shot in shots}):
        notes.add("classes missing", tag)
    clips, truth, sizes = _clips(shots, FIRST_PIXEL[chosen], notes)
    if validation != "from the list":
        notes.say("train shots, val frames and val boxes depend on the sampled videos; the published ones need a list")
    return Index(
        clips,
        truth,
        sizes,
        name=f"youtube-objects-{version}",
        summary=f"YouTube-Objects v{version}, {layout}; validation videos {validation}",
        notes=tuple(notes.lines()),
        published=PUBLISHED[chosen],
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
            boxes, kept_sizes = _labelled(shot, first_pixel, notes)
            kept = tuple(frame for frame in shot.frames if frame in boxes)
            if not kept:
                continue
            frames[shot.name] = {index: boxes[frame] for index, frame in enumerate(kept)}
            sizes |= {(shot.name, index): kept_sizes[frame] for index, frame in enumerate(kept)}
        clips.append(Clip(shot.name, shot.tag, shot.split, kept[0].parent, shot.video, frames=kept))
    return tuple(clips), Truth(frames), sizes


def _labelled(shot: Shot, first: int, notes: Notes) -> tuple[dict[Path, list[Box]], dict[Path, tuple[int, int]]]:
    boxes, sizes = {}, {}
    for frame, corners in shot.labels.items():
        if not len(corners):
            notes.add("labels without a box left out", frame)
        elif (size := image_size(frame)) is None:
            notes.add("labelled frames left out, which are no readable image", frame)
        elif usable := correct_boxes(corners, size, frame, notes, first=first, drawn_on=shot.drawn_on.get(frame)):
            boxes[frame], sizes[frame] = usable, size
    return boxes, sizes


def _unknown_layout(root: Path, version: Version, *, other: bool) -> str:
    expected = {
        "1.0": "<class>/data and <class>/sets",
        "2.2": "<class>, Ranges and GroundTruth",
    }[version]
    if other:
        return f"{root}: not version {version} ({expected}) but the other one: change `version`"
    return (
        f"{root}: neither version {version} as distributed ({expected}) nor frames with split lists, which `lists` "
        "names"
    )
