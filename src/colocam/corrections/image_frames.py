"""Labels of image files: find the video and the frame that each image shows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePosixPath

import numpy as np

from colocam.corrections.imported import FrameLabel, ImportedVideo, LeftOut, tracks_of_frames
from colocam.export.labels import LabelledVideo
from colocam.types import Box

_NUMBERED = re.compile(r"(.*?)[ _.-]?(\d{1,9})", re.DOTALL)
UNNAMED = frozenset({"", "frame", "img", "image"})
"""Beginnings of file names that do not name a video: CVAT writes ``frame_000012``."""


@dataclass(frozen=True, slots=True)
class LabelledImage:
    """The labels of one image file.

    Attributes:
        name: of the file, with or without folders and ending.
        labels: class and box of each object.
        size: width and height; None: not stated.
        video: the video it is a frame of, where the file says so.
        frame: index in that video, from 0, where the file says so.
    """

    name: str
    labels: list[tuple[str, Box]] = field(repr=False)
    size: tuple[int, int] | None = None
    video: str | None = None
    frame: int | None = None


def videos_of_images(
    images: Sequence[LabelledImage], known: Sequence[LabelledVideo], left_out: LeftOut, *, relative: bool = False
) -> list[ImportedVideo]:
    """Group images by the video whose frames they are.

    An image is a frame of a video if it says so, if a known folder of images holds a file of this name, or if its
    name is that of a video and the index of a frame, as ``new_000012``.

    Args:
        images: the labelled images.
        known: videos with localisation tables.
        left_out: gets what belongs to no video.
        relative: boxes are shares of the image's size.
    """
    places = _places(known)
    groups: dict[tuple[str, tuple[int, int] | None], dict[int, LabelledImage]] = {}
    for image in images:
        folder, stem = _stem(image.name)
        place = (image.video, image.frame) if image.video is not None else None
        name, frame = place or places.get(f"{folder}/{stem}") or places.get(stem) or _numbered(stem)
        if frame is None:
            left_out[f"image {image.name!r}: its name has no frame index, and no table lists such an image"] += 1
            continue
        frames = groups.setdefault((name or "", image.size), {})
        if frame in frames:
            left_out[f"image {image.name!r}: frame {frame} of the video has labels of another image already"] += 1
            continue
        frames[frame] = image
    return [
        ImportedVideo(
            names=() if name.casefold() in UNNAMED else (name,),
            tracks=tracks_of_frames(FrameLabel(at, *label) for at, image in frames.items() for label in image.labels),
            listed=np.array(sorted(frames), np.int64),
            size=size,
            relative=relative,
        )
        for (name, size), frames in groups.items()
    ]


def _places(known: Sequence[LabelledVideo]) -> dict[str, tuple[str, int]]:
    """Video and frame of each image of known folders, by its name, also with the folder or the table before it."""
    places: dict[str, tuple[str, int]] = {}
    twice: set[str] = set()
    for video in known:
        for frame, (own, written) in enumerate(zip_longest(video.source.pictures, video.images, fillvalue="")):
            stem = _stem(own)[1]
            for name in {stem, f"{PurePosixPath(video.source.file).name}/{stem}", _stem(written)[1]} - {""}:
                twice |= {name} & places.keys()
                places[name] = video.name, frame
    return {name: place for name, place in places.items() if name not in twice}


def _stem(name: str) -> tuple[str, str]:
    """The folder and the file name, without the ending of an image or label file."""
    path = PurePosixPath(name.replace("\\", "/"))
    stem, dot, ending = path.name.rpartition(".")
    return path.parent.name, stem if dot and not ending.isdigit() else path.name


def _numbered(stem: str) -> tuple[str, int | None]:
    match = _NUMBERED.fullmatch(stem)
    return (match[1], int(match[2])) if match else (stem, None)
