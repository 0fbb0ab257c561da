"""Image files as the frames of a video: a folder of images, in natural order, is a video."""

import codecs
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import PIL.ExifTags
import PIL.Image

from colocam.errors import ColocamError
from colocam.types import Image, VideoFrame
from colocam.utils.progress import say
from colocam.video.input import UnreadableError, check_pixels

IMAGE_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
VIDEO_ENDINGS = frozenset(
    {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".mts", ".m2ts", ".wmv", ".flv", ".gif"}
)
NOT_VIDEO_ENDINGS = IMAGE_ENDINGS | {
    *(".txt", ".md", ".rst", ".pdf", ".html", ".htm", ".xml", ".doc", ".docx", ".url", ".nfo", ".log"),
    *(".csv", ".tsv", ".parquet", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".xls", ".xlsx", ".db"),
    *(".srt", ".vtt", ".ass", ".ssa", ".sub", ".mp3", ".wav", ".flac", ".m4a", ".ogg", ".aac"),
    *(".mat", ".npy", ".npz", ".py", ".sh", ".ipynb", ".zip", ".tar", ".gz", ".7z", ".rar", ".part", ".tmp"),
}
_DAMAGED = (OSError, ValueError, SyntaxError)
"""What Pillow raises for a file that is not an image, or whose header is damaged."""


def silence_opencv() -> None:
    """Stop OpenCV writing to standard error: our errors say what is wrong with a file."""
    if hasattr(cv2.utils, "logging"):
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    else:  # before OpenCV 4.13
        cv2.setLogLevel(0)  # type: ignore[attr-defined]


silence_opencv()
warnings.filterwarnings("ignore", category=PIL.Image.DecompressionBombWarning)  # MAX_PIXELS is the limit here
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


def natural_key(name: str) -> tuple[tuple[int, int, str, str], ...]:
    """Sort key that puts frame2 before frame10; numbers may have any length."""
    parts = re.findall(r"(0*([0-9]+))|([^0-9]+)", name)
    return tuple((0, len(digits), digits, whole) if digits else (1, 0, text, "") for whole, digits, text in parts)


def images_of(folder: Path) -> tuple[Path, ...]:
    """Image files of a folder in natural order."""
    return tuple(folder / e.name for e in visible_entries(folder) if ending_of(e) in IMAGE_ENDINGS and is_file(e))


def visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Entries of a folder whose names do not begin with a dot, in natural order."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if not e.name.startswith(".")), key=lambda entry: natural_key(entry.name))
    except OSError as error:
        raise ColocamError(f"cannot read the folder {folder}: {error.strerror}") from error


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file or a link to one; False where a link leads in a circle."""
    with suppress(OSError):
        return entry.is_file()
    return False


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to one; False where a link leads in a circle."""
    with suppress(OSError):
        return entry.is_dir()
    return False


def ending_of(entry: os.DirEntry[str]) -> str:
    """The ending of a file name, with its dot, in lower case."""
    return os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 - making a Path of each of 100,000 names is slow


def may_be_video(path: str) -> bool:
    """Whether a file may be a video, by its ending; with any other ending, unless it is a text.

    FFmpeg reads hundreds of formats and knows them by their content. What is no file counts as a video, whose reader
    says so.
    """
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122 - as in ending_of
    if ending in NOT_VIDEO_ENDINGS or ending in VIDEO_ENDINGS or not os.path.isfile(path):  # noqa: PTH113
        return ending not in NOT_VIDEO_ENDINGS
    with suppress(OSError, UnicodeDecodeError), Path(path).open("rb") as file:
        beginning = file.read(1024)
        codecs.getincrementaldecoder("utf-8")().decode(beginning)  # its last character may be cut
        return b"\0" in beginning or not beginning
    return True


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
    has_images = False
    for index, path in enumerate(paths):
        try:
            image = read_image(path)
        except UnreadableError as error:
            say(f"warning: {error}")
            continue
        if image is not None:
            has_images = True
            yield VideoFrame(index, float(index / rate), image)
    if not has_images:
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
                f"{paths[frame.index]} is {width}×{height}, but the images before it are {size[0]}×{size[1]}: "
                "the images of a folder are the frames of one video and must have one size"
            )
        yield frame
