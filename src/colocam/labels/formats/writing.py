"""What several formats are written with: frames as image files, key frames, outlines of masks, XML, colors.

Tests: tests/labels/test_yolo_and_voc.py, tests/labels/test_mask_formats.py, tests/labels/test_keyframes.py.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, Options
from colocam.types import Float64Array, VideoFrame
from colocam.utils.files import stored
from colocam.utils.progress import progress
from colocam.video.fence import decode, read_image
from colocam.video.images import is_upright

QUALITY = 95
WITHIN = 0.25
"""Where a point lies in its pixel: programs that truncate and programs that round find the same pixel."""


def write_images(labels: LabelSet, options: Options, target: Callable[[LabeledVideo, int], Path]) -> None:
    """Write every listed frame, if the options ask for images.

    A video is decoded once; image files are copied unchanged.

    Args:
        labels: the videos.
        options: see :attr:`Options.images`.
        target: gives the file for a frame of a video; its ending decides the format.
    """
    for video in labels.videos if options.images else ():
        source, wanted = video.source, set(video.listed.tolist())
        if not stored(source.path).exists():
            raise ArgumentError("images", f"need the video, but {source.path} does not exist: name it with `videos`")
        with progress(f"writing frames of {source.file}", len(wanted), unit="frames") as advance:
            for frame in _frames(video):
                if frame.index not in wanted:
                    continue
                height, width = frame.image.shape[:2]
                if (width, height) != video.size:
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


def _frames(video: LabeledVideo) -> Iterator[VideoFrame]:
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


def _write(video: LabeledVideo, frame: VideoFrame, target: Path) -> None:
    """Copy the original file if it has the right format and needs no rotation, else encode the frame."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if video.source.pictures:
        original = video.source.path / video.source.pictures[frame.index]
        if original.suffix.lower() == target.suffix.lower() and is_upright(original):
            shutil.copyfile(original, target)
            return
    quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    _, encoded = cv2.imencode(target.suffix, cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR), quality)
    target.write_bytes(encoded.tobytes())


def sparse_keyframes(
    frames: npt.NDArray[np.int64], boxes: npt.NDArray[np.float64], tolerance: float
) -> npt.NDArray[np.int64]:
    """Choose key frames by the rule of Douglas and Peucker, with the error of each corner at its own frame.

    Args:
        frames: (n,) ascending.
        boxes: (n, 4).
        tolerance: pixels by which an interpolated corner may be off.

    Returns:
        Indices into ``frames``, sorted; the first and the last are among them.
    """
    keep = np.zeros(len(frames), bool)
    keep[[0, -1]] = True
    waiting = [(0, len(frames) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        inside = slice(first + 1, last)
        share = ((frames[inside] - frames[first]) / (frames[last] - frames[first]))[:, None]
        error = np.abs(boxes[first] + share * (boxes[last] - boxes[first]) - boxes[inside]).max(axis=1)
        worst = int(error.argmax())
        if error[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            waiting += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


def polygon_of(mask: npt.NDArray[np.bool_]) -> Float64Array:
    """Points (n, 2) x, y of the outline of a mask (H, W) that is not empty, in pixels, through its outermost pixels.

    Holes are filled. Parts are joined by lines there and back between their nearest points, since a segment is one
    polygon in formats such as YOLO's.
    """
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    parts = sorted((contour[:, 0].astype(np.float64) for contour in contours), key=len, reverse=True)
    joined = parts[0]
    for part in parts[1:]:
        distances = np.abs(joined[:, None] - part).sum(-1)
        here, there = np.unravel_index(int(distances.argmin()), distances.shape)
        around = np.concatenate([part[there:], part[: there + 1]])
        joined = np.concatenate([joined[: here + 1], around, joined[here:]])
    if len(joined) < 3:  # a single row or column of pixels
        joined = np.concatenate([joined, joined[::-1], joined])[:4]
    return joined + WITHIN


def xml_of(tag: str, content: object, parent: ET.Element | None = None) -> ET.Element:
    """An element with a text, or of a dictionary: its children by name, several of one name in a list."""
    element = ET.Element(tag) if parent is None else ET.SubElement(parent, tag)
    if isinstance(content, dict):
        for name, part in content.items():
            for one in part if isinstance(part, list) else (part,):
                xml_of(name, one, element)
    else:
        element.text = str(content)
    return element


def color(index: int) -> tuple[int, int, int]:
    """Color of a class in VOC's palette: the bits of its index spread over the high bits of red, green and blue."""
    channels = [0, 0, 0]
    for bit in range(8):
        for channel in range(3):
            channels[channel] |= (index >> (3 * bit + channel) & 1) << (7 - bit)
    return channels[0], channels[1], channels[2]
