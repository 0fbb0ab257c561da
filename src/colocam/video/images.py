"""Image files as the frames of a video: a folder of images, in natural order, is a video."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import PIL.ExifTags
import PIL.Image

from colocam.types import Image, VideoFrame
from colocam.utils.opencv_log import silence_opencv
from colocam.utils.progress import say
from colocam.video.image_files import images_of
from colocam.video.input import UnreadableError, check_pixels

_DAMAGED = (OSError, ValueError, SyntaxError)
"""What Pillow raises for a file that is not an image, or whose header is damaged."""
silence_opencv()
warnings.filterwarnings("ignore", category=PIL.Image.DecompressionBombWarning)  # MAX_PIXELS is the limit here
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


def folder_frames(folder: Path, rate: Fraction) -> tuple[tuple[Path, ...], Iterator[VideoFrame]]:
    """The image files of a folder, and their frames, ``rate`` per second.

    All images must have one size, since boxes are in pixels of the video.

    Raises:
        UnreadableError: the folder has no image, no image can be read, or an image differs in size from the first.
    """
    paths = images_of(folder)
    if not paths:
        raise UnreadableError(f"cannot read {folder}: it is a folder without images, not a video file")
    return paths, _of_one_size(paths, image_frames(paths, rate))


def image_frames(paths: Sequence[Path], rate: Fraction = Fraction(1)) -> Iterator[VideoFrame]:
    """Yield image files as frames: ``index`` is the index in ``paths``, ``pts`` is ``index`` / ``rate``.

    Images that cannot be read or are too large are skipped, so their index is missing. Sizes may differ.

    Raises:
        UnreadableError: no image can be read.
    """
    found = False
    for index, path in enumerate(paths):
        try:
            image = read_image(path)
        except UnreadableError as error:
            say(f"warning: {error}")
            continue
        if image is not None:
            found = True
            yield VideoFrame(index, float(index / rate), image)
    if not found:
        raise UnreadableError(f"cannot read {paths[0].parent}: none of its {len(paths)} images can be decoded")


def read_image(path: Path) -> Image | None:
    """(H, W, 3) uint8 RGB with EXIF orientation applied, None if the file is not a complete image.

    Raises:
        UnreadableError: its header states more than :data:`colocam.video.input.MAX_PIXELS`.
    """
    with suppress(*_DAMAGED), _open_header(path):
        pass
    try:
        data = np.fromfile(path, np.uint8)  # on some systems OpenCV cannot open non-Latin names
        bgr = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except (OSError, cv2.error):
        return None
    return None if bgr is None else np.ascontiguousarray(bgr[..., ::-1], dtype=np.uint8)


def image_size(path: Path) -> tuple[int, int] | None:
    """(width, height) as :func:`read_image` gives it, from the file's header; None if it is not a readable image."""
    header = _header(path)
    if header is None:
        return None
    width, height, orientation = header
    return (height, width) if orientation >= 5 else (width, height)


def is_upright(path: Path) -> bool:
    """Whether an image looks the same to a reader that ignores its EXIF orientation."""
    header = _header(path)
    return header is not None and header[2] == 1


@contextmanager
def _open_header(path: Path) -> Iterator[PIL.Image.Image]:
    try:
        image = PIL.Image.open(path)
    except PIL.Image.DecompressionBombError as error:  # of more pixels than MAX_PIXELS
        raise UnreadableError(f"cannot read {path}: {error}: scale it down") from error
    with image:
        check_pixels(str(path), *image.size)
        yield image


def _header(path: Path) -> tuple[int, int, int] | None:
    """Width and height as stored, and EXIF orientation; None if it is not an image."""
    try:
        with _open_header(path) as image:  # finding its orientation decodes a PNG file
            return *image.size, image.getexif().get(PIL.ExifTags.Base.Orientation, 1)
    except (*_DAMAGED, UnreadableError):
        return None


def _of_one_size(paths: Sequence[Path], frames: Iterator[VideoFrame]) -> Iterator[VideoFrame]:
    size: tuple[int, int] | None = None
    for frame in frames:
        height, width = frame.image.shape[:2]
        size = size or (width, height)
        if (width, height) != size:
            raise UnreadableError(
                f"{paths[frame.index]} is {width}×{height}, the images before it are {size[0]}×{size[1]}: "
                "the images of a folder are the frames of one video and must have one size"
            )
        yield frame
