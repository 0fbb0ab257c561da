"""Read the frames of a clip: a video file or a folder of images."""

from collections.abc import Iterator

import cv2

from colocam.types import Clip, Image, VideoFrame
from colocam.video.fence import decode, decode_images
from colocam.video.input import VideoInput


def clip_frames(clip: Clip, *, threads: int = 0) -> Iterator[VideoFrame]:
    """Yield the clip's frames in order; ``threads`` as in :func:`decode`."""
    if clip.frames:
        return decode_images(clip.frames)
    return decode(stored(clip), start=clip.start, end=clip.end, threads=threads)


def stored(clip: Clip) -> VideoInput:
    """The file of a clip, which must not be a pipe: it is read more than once."""
    return VideoInput(str(clip.path), must_be_stored=True)


def resize_square(image: Image, size: int) -> Image:
    """Resize to (size, size, 3), ignoring the aspect ratio: area average to shrink, interpolation to enlarge."""
    height, width = image.shape[:2]
    if width > size or height > size:
        image = cv2.resize(image, (min(width, size), min(height, size)), interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    if image.shape[:2] != (size, size):
        image = cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)  # type: ignore[assignment]
    return image
