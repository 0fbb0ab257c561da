"""What several formats are read with: label files of strangers, checked numbers, and the frames that images show.

Tests: tests/labels/test_damaged_labels.py.
"""

import lzma
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isfinite
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from colocam.errors import ColocamError, first_line
from colocam.labels.imported_videos import FrameLabel, ImportedVideo, tracks_of_frames
from colocam.labels.labeled_videos import LabeledVideo, LeftOut
from colocam.types import Box
from colocam.utils.files import parse_json, stored
from colocam.video.images import natural_key

LARGEST = 1 << 29
"""Bytes of a label file at most."""
MOST_VALUES = 1 << 24
"""Values of a label file at most; a box has about ten. Each takes about 100 bytes of memory where it is one in JSON."""
FARTHEST = float(1 << 20)
"""Pixels from the upper left corner at most; no frame is so large."""
LABELS = frozenset({".xml", ".json", ".txt", ".yaml", ".yml", ".csv", ".parquet", ".ini", ".names"})
"""Endings of the files that are unpacked; images are not needed."""
MOST_FILES = 1 << 20
MOST_BYTES = 1 << 30
SMALL_BYTES = 1 << 24
MOST_TIMES = 200
"""Labels of an archive may be so many times larger than they are in it, if they are larger than :data:`SMALL_BYTES`;
real ones are about 20 times larger."""
DAMAGED = (
    BadZipFile,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
"""What ``zipfile`` raises for an archive that is damaged, cut off or encrypted."""
_NUMBERED = re.compile(r"(.*?)[ _.-]?(\d{1,9})", re.DOTALL)
UNNAMED = frozenset({"", "frame", "img", "image"})
"""Beginnings of file names that do not name a video: CVAT writes ``frame_000012``."""

_NUMBERS = frozenset({str, int, float})
_NAN = float("nan")


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file or folder itself, or a temporary folder with the label files of an archive."""
    if not stored(path).exists():
        raise ColocamError(f"cannot read {path}: there is no such file or folder")
    if path.is_dir() or not is_zipfile(path):
        yield path
        return
    with TemporaryDirectory(prefix="colocam-") as folder:
        # The folder keeps the archive's name, by which some formats name their video.
        place = Path(folder) / path.stem
        place.mkdir()
        try:
            with ZipFile(path) as archive:
                members = [member for member in archive.infolist() if Path(member.filename).suffix.lower() in LABELS]
                size = sum(member.file_size for member in members)
                packed = sum(member.compress_size for member in members)  # other files would hide how much they grow
                most = min(MOST_BYTES, max(SMALL_BYTES, MOST_TIMES * packed))
                if len(members) > MOST_FILES or size > most:
                    raise ColocamError(
                        f"{path}: {len(members)} label files of {size >> 20} MiB are too large for this archive: "
                        "unpack it and give the folder"
                    )
                for member in members:
                    archive.extract(member, place)  # removes .. and the root from names
        except DAMAGED as error:
            raise ColocamError(f"{path}: not a complete ZIP archive: download it again, or give a folder") from error
        yield place


def files_of(path: Path, *endings: str) -> list[Path]:
    """The file itself, or all files of a folder and its folders with one of these endings, in natural order."""
    if not path.is_dir():
        return [path]
    files = [one for one in path.rglob("*") if one.suffix.lower() in endings and one.is_file()]
    files = [one for one in files if not one.name.startswith(".")]
    if not files:
        raise ColocamError(f"{path}: no file ends in {' or '.join(endings)}: is it in a different format?")
    return sorted(files, key=lambda one: natural_key(str(one)))


def read_label_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        if stored(path).stat().st_size > LARGEST:
            raise ColocamError(f"{path}: larger than {LARGEST >> 20} MiB, and no label file is that large")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ColocamError(f"{path}: not text in UTF-8: is it in a different format?") from error
    except OSError as error:
        raise ColocamError(f"cannot read {path}: {error.strerror}") from error


def parse_xml(text: str, where: object) -> ET.Element:
    """The root of an XML document, with all that is in it; ``where`` begins an error."""
    with _explained_xml(text, where):
        return ET.fromstring(text)  # noqa: S314 - without entities, see below


def stream_xml(path: Path) -> Iterator[ET.Element]:
    """The root of an XML file without its children, then each of them; one child at a time is in memory."""
    around: list[ET.Element] = []
    with _explained_xml(read_label_text(path), path), path.open(encoding="utf-8-sig") as file:
        for event, element in ET.iterparse(file, ("start", "end")):  # noqa: S314 - without entities, see below
            if event == "start":
                around.append(element)
            else:
                around.pop()
            if len(around) == 1:
                yield element
                around[0].clear()


@contextmanager
def _explained_xml(text: str, where: object) -> Iterator[None]:
    """Turn errors of a parser into one line; documents that declare entities are refused: no label file needs them."""
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise ColocamError(f"{where}: declares entities, which label files never do")
    refuse_many_values(where, text.count("<") + text.count("="))
    del text  # it may be large
    try:
        yield
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise ColocamError(f"{where}: not XML ({first_line(error)}): is it in a different format?") from error


def parse_label_json(path: Path, each: Callable[[dict[str, Any]], Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """The content of a JSON file; ``each`` gets every object as soon as it is read, and gives what stands for it."""
    text = read_label_text(path)
    refuse_many_values(path, sum(map(text.count, "[{,")))
    try:
        return parse_json(text, each)
    except ValueError as error:
        raise ColocamError(f"{path}: not JSON ({first_line(error)}): is it in a different format?") from error


def refuse_many_values(where: object, values: int) -> None:
    """Refuse a file before it is parsed, by a count that takes no memory."""
    if values > MOST_VALUES:
        raise ColocamError(f"{where}: has {values} values, the limit is {MOST_VALUES}: split the file")


def whole_number(path: Path, name: str, value: object) -> int | None:
    """A whole number from 0; None for an empty value."""
    if value is None or value == "":
        return None
    number = finite_number(path, name, value)
    if number < 0 or number != int(number) or number > 1 << 32:
        raise ColocamError(f"{path}: {name} must be a whole number from 0, got {str(value)[:40]!r}")
    return int(number)


def finite_number(path: Path, name: str, value: object) -> float:
    """A number that is neither NaN nor infinite."""
    try:
        # True is no number, though an int; a large file has millions of values, so that this is the quickest way
        number = float(value) if type(value) in _NUMBERS else _NAN  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        number = _NAN
    if not isfinite(number):
        raise ColocamError(f"{path}: {name} must be a number, got {str(value)[:40]!r}")
    return number


def size_of(path: Path, width: object, height: object) -> tuple[int, int] | None:
    """Width and height of an image; None where one of them is not stated."""
    sides = whole_number(path, "width", width), whole_number(path, "height", height)
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def corners_of(path: Path, corners: Sequence[object]) -> Box:
    """A box from its corners x1, y1, x2, y2; corners in the wrong order are swapped, as the tools do."""
    x1, y1, x2, y2 = sides = [finite_number(path, "a corner of a box", corner) for corner in corners]
    if max(sides) > FARTHEST or min(sides) < -FARTHEST:
        raise ColocamError(f"{path}: a box lies at {x1:g}, {y1:g}, {x2:g}, {y2:g}, which is outside any frame")
    if x1 <= x2 and y1 <= y2:
        return Box(x1, y1, x2, y2)
    return Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def box_of(path: Path, sides: Sequence[object]) -> Box:
    """A box from its x, y, width and height."""
    named = zip(("x", "y", "width", "height"), sides, strict=True)
    x, y, width, height = (finite_number(path, name, side) for name, side in named)
    return corners_of(path, (x, y, x + width, y + height))


def listed_objects(path: Path, value: object, name: str) -> list[dict[str, Any]]:
    """A list of JSON objects; empty for a missing one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ColocamError(f"{path}: {name} must be a list of objects: is it in a different format?")
    return value


class ImageLabel(NamedTuple):
    """A box of an image; ``number`` is that of its object in the video, from 1, None where it is not known."""

    tag: str
    box: Box
    number: int | None = None


@dataclass(frozen=True, slots=True)
class LabeledImage:
    """The labels of one image file.

    Attributes:
        name: of the file, with or without folders and ending.
        labels: the objects.
        size: width and height; None: not stated.
        video: the video it is a frame of, where the file says so.
        frame: index in that video, from 0, where the file says so.
    """

    name: str
    labels: list[ImageLabel] = field(repr=False)
    size: tuple[int, int] | None = None
    video: str | None = None
    frame: int | None = None


def videos_of_images(
    images: Sequence[LabeledImage], known: Sequence[LabeledVideo], left_out: LeftOut, *, relative: bool = False
) -> list[ImportedVideo]:
    """Group images by the video whose frames they are.

    An image is a frame of a video if it says so, if a known folder of images holds a file of this name, or if its
    name is that of a video and the index of a frame, as ``new_000012``.

    Args:
        images: the labeled images.
        known: videos with localization tables.
        left_out: gets what belongs to no video.
        relative: boxes are shares of the image's size.
    """
    places = _places(known)
    groups: dict[tuple[str, tuple[int, int] | None], dict[int, LabeledImage]] = {}
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


def _places(known: Sequence[LabeledVideo]) -> dict[str, tuple[str, int]]:
    """Video and frame of each image of known folders, by its name, also with the folder or the table before it."""
    places: dict[str, tuple[str, int]] = {}
    twice: set[str] = set()
    for video in known:
        for frame, (picture, written) in enumerate(zip_longest(video.source.pictures, video.images, fillvalue="")):
            stem = _stem(picture)[1]
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
