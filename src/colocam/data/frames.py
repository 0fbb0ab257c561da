"""Frames of a clip, whether it is a video file or a folder of pictures."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
import PIL.ExifTags
import PIL.Image

from colocam.data.video import Image, UnreadableError, VideoFrame, decode
from colocam.types import Clip


def clip_frames(clip: Clip, *, threads: int = 0) -> Iterator[VideoFrame]:
    """Yield the clip's frames in order; ``threads`` as in :func:`decode`."""
    if clip.frames:
        return picture_frames(clip.frames)
    return decode(clip.path, start=clip.start, end=clip.end, threads=threads)


def picture_frames(paths: Sequence[Path]) -> Iterator[VideoFrame]:
    """Yield picture files as frames: ``index`` is the place in ``paths``, ``pts`` the same, as one frame a second.

    Pictures that cannot be read are left out and keep their index. Sizes may differ from frame to frame.

    Raises:
        UnreadableError: not one picture can be read.
    """
    found = False
    for index, path in enumerate(paths):
        image = read_picture(path)
        if image is not None:
            found = True
            yield VideoFrame(index, float(index), image)
    if not found:
        raise UnreadableError(f"cannot read {paths[0].parent}: not one of its {len(paths)} pictures can be decoded")


def read_picture(path: Path) -> Image | None:
    """(H, W, 3) uint8 RGB with EXIF orientation applied, None if the file is no whole picture."""
    try:
        data = np.fromfile(path, np.uint8)  # OpenCV itself opens no non-Latin names on some systems
        bgr = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except (OSError, cv2.error):
        return None
    return None if bgr is None else np.ascontiguousarray(bgr[..., ::-1], dtype=np.uint8)


def picture_size(path: Path) -> tuple[int, int] | None:
    """(width, height) as :func:`read_picture` gives it, from the file's header alone; None if it is no picture."""
    try:
        with PIL.Image.open(path) as picture:
            width, height = picture.size
            turned = picture.getexif().get(PIL.ExifTags.Base.Orientation, 1) >= 5
    except OSError:
        return None
    return (height, width) if turned else (width, height)


def resize_square(image: Image, size: int) -> Image:
    """(size, size, 3), aspect ignored; averages over areas where it shrinks, interpolates where it grows."""
    height, width = image.shape[:2]
    if width > size or height > size:
        image = cv2.resize(image, (min(width, size), min(height, size)), interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    if image.shape[:2] != (size, size):
        image = cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)  # type: ignore[assignment]
    return image
