"""Labels of image files: find the video and the frame that each image shows; write the listed frames of videos."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path, PurePosixPath

import cv2
import numpy as np

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.imported import FrameLabel, ImportedVideo, LeftOut, tracks_of_frames
from colocam.labels.labelled_videos import LabelledVideo
from colocam.types import Box, VideoFrame
from colocam.utils.files import stored
from colocam.utils.progress import progress
from colocam.video.fence import decode, read_image
from colocam.video.images import is_upright

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


QUALITY = 95


def write_images(videos: Sequence[LabelledVideo], target: Callable[[LabelledVideo, int], Path]) -> None:
    """Write every listed frame.

    Args:
        videos: the videos.
        target: gives the file for a frame of a video, in a folder that exists; its ending decides the format.
    """
    for video in videos:
        source, wanted = video.source, set(video.listed.tolist())
        if not stored(source.path).exists():
            raise ArgumentError("images", f"need the video, but {source.path} does not exist: name it with `videos`")
        with progress(f"writing frames of {source.file}", len(wanted), unit="frames") as advance:
            for frame in _frames(video):
                if frame.index not in wanted:
                    continue
                height, width = frame.image.shape[:2]
                if (width, height) != (source.width, source.height):
                    raise ColocamError(
                        f"{source.path} is {width}×{height}, but the table is of a video of "
                        f"{source.width}×{source.height}: name the right one with `videos`"
                    )
                _write(video, frame, target(video, frame.index))
                wanted.discard(frame.index)
                advance()
                if not wanted:
                    break
        if wanted:
            raise ColocamError(
                f"{source.path} has no frame {min(wanted)}, which {video.name} lists: name the right video with "
                "`videos`"
            )


def _frames(video: LabelledVideo) -> Iterator[VideoFrame]:
    """At least the listed frames; images by their names, since the folder may have changed."""
    if not video.source.pictures:
        yield from decode(video.source.path)
        return
    for frame in video.listed.tolist():
        path = video.source.path / video.source.pictures[frame]
        image = read_image(path)
        if image is None:
            raise ColocamError(f"{path} cannot be read, but {video.name} lists it: name the folder with `videos`")
        yield VideoFrame(frame, 0.0, image)


def _write(video: LabelledVideo, frame: VideoFrame, target: Path) -> None:
    """Copy the original file if it has the right format and needs no rotation, else encode the frame."""
    if video.source.pictures:
        original = video.source.path / video.source.pictures[frame.index]
        if original.suffix.lower() == target.suffix.lower() and is_upright(original):
            shutil.copyfile(original, target)
            return
    quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    _, encoded = cv2.imencode(target.suffix, cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR), quality)
    target.write_bytes(encoded.tobytes())
