"""Pictures as the frames of a video: a folder of them, in natural order, is one."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import PIL.ExifTags
import PIL.Image

from colocam.types import Image, VideoFrame
from colocam.video.image_files import images_of
from colocam.video.input import UnreadableError


def folder_frames(folder: Path, rate: Fraction) -> tuple[tuple[Path, ...], Iterator[VideoFrame]]:
    """The picture files of a folder, and they themselves as frames, ``rate`` a second.

    All have one size, since boxes are in the pixels of a video.

    Raises:
        UnreadableError: there is none, not one can be read, or one has another size than the first.
    """
    paths = images_of(folder)
    if not paths:
        raise UnreadableError(f"cannot read {folder}: it is a folder without a picture, not a video file")
    return paths, _of_one_size(paths, picture_frames(paths, rate))


def picture_frames(paths: Sequence[Path], rate: Fraction = Fraction(1)) -> Iterator[VideoFrame]:
    """Yield picture files as frames: ``index`` is the place in ``paths``, ``pts`` that of ``rate`` pictures a second.

    Pictures that cannot be read are left out and keep their index. Sizes may differ from frame to frame.

    Raises:
        UnreadableError: not one picture can be read.
    """
    found = False
    for index, path in enumerate(paths):
        image = read_picture(path)
        if image is not None:
            found = True
            yield VideoFrame(index, float(index / rate), image)
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
    header = _header(path)
    if header is None:
        return None
    width, height, orientation = header
    return (height, width) if orientation >= 5 else (width, height)


def is_upright(path: Path) -> bool:
    """Whether a picture looks the same to those who do not read its EXIF orientation."""
    header = _header(path)
    return header is not None and header[2] == 1


def _header(path: Path) -> tuple[int, int, int] | None:
    """Width and height as stored, and EXIF orientation; None if it is no picture."""
    try:
        with PIL.Image.open(path) as picture:
            return *picture.size, picture.getexif().get(PIL.ExifTags.Base.Orientation, 1)
    except OSError:
        return None


def _of_one_size(paths: Sequence[Path], frames: Iterator[VideoFrame]) -> Iterator[VideoFrame]:
    size: tuple[int, int] | None = None
    for frame in frames:
        height, width = frame.image.shape[:2]
        size = size or (width, height)
        if (width, height) != size:
            raise UnreadableError(
                f"{paths[frame.index]} is {width}×{height}, pictures before it {size[0]}×{size[1]}: "
                "a folder of pictures is one video, and its frames have one size"
            )
        yield frame
