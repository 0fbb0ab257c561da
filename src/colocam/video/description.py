"""Description of the video of a localization table: ``new.video.json`` beside ``new.csv``."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter

from colocam.errors import ColocamError
from colocam.utils.files import parse_json, stored, utf8, write_json
from colocam.video.reader import DEFAULT_FPS, VideoReader

FORMAT = 1
WIDEST = 1 << 16
"""Pixels along a side at most; no codec has more."""
MOST_FRAMES = 1 << 32

_RATE = re.compile(r"\d{1,20}([./]\d{1,20})?", re.ASCII)


def _rate(stated: object) -> Fraction:
    """Frames per second; an exponent is refused, since its power of ten may not fit into memory."""
    if not _RATE.fullmatch(text := str(stated)) or not (rate := Fraction(text)):
        raise ValueError("no frame rate")
    return rate


def _file_name(name: str) -> str:
    """The name of an image file, which is opened and written by it."""
    if name != Path(name).name or name != utf8(name) or "\0" in name:
        raise ValueError("no name of a file")
    return name


Side = Annotated[int, Field(gt=0, le=WIDEST)]
Rate = Annotated[Fraction, PlainValidator(_rate)]
FileName = Annotated[str, AfterValidator(_file_name)]


@dataclass(frozen=True, slots=True)
class SourceVideo:
    """What label formats need to know of a video. Only this type is stored, beside the table, as ``.video.json``.

    Attributes:
        path: the file or folder of images, as it was read.
        width: pixels, as displayed.
        height: pixels, as displayed.
        fps: average frame rate.
        frames: number of frames.
        duration: seconds.
        pictures: names of the image files, where it is a folder of images.
        shown_as: what exports state in place of ``path``, which may say nothing of this machine; "": the path.
    """

    path: Path
    width: Side
    height: Side
    fps: Rate
    frames: Annotated[int, Field(gt=0, le=MOST_FRAMES)]
    duration: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    pictures: tuple[FileName, ...] = ()
    shown_as: str = ""

    @property
    def file(self) -> str:
        """Name of the file, in characters that every format can hold."""
        return self.shown_as or utf8(self.path.name)

    @property
    def stated_path(self) -> str:
        """The path that exports state, in characters that every format can hold."""
        return self.shown_as or utf8(str(self.path))


_SOURCE = TypeAdapter(SourceVideo)


def describe(path: Path, reader: VideoReader) -> SourceVideo:
    """Describe a video that was read; where only a part was, it has as many frames as its header states."""
    info, fps = reader.info, reader.info.fps or DEFAULT_FPS
    frames = reader.count if reader.ended else max(reader.count, reader.total)
    duration = info.duration or float(frames / fps)
    return SourceVideo(path.absolute(), info.width, info.height, fps, frames, duration, picture_names(reader.pictures))


def picture_names(pictures: Sequence[Path]) -> tuple[str, ...]:
    """File names, in characters that every format can hold."""
    return tuple(utf8(picture.name) for picture in pictures)


def source_path(table: Path) -> Path:
    """Path of the description that belongs to a localization table."""
    return table.with_name(f"{table.stem}.video.json")


def write_source(
    table: Path, source: SourceVideo, made: str | None = None, results: dict[str, list[str]] | None = None
) -> Path:
    """Write the description beside its table.

    Args:
        table: the localization table.
        source: the video.
        made: fingerprint of model, video and settings.
        results: digests that each result file may have, by its name.
    """
    target = source_path(table)
    more = {"made": made, "results": results}
    write_json(target, source_card(source) | {name: value for name, value in more.items() if value is not None})
    return target


def source_card(source: SourceVideo) -> dict[str, Any]:
    """The fields of a description."""
    card = {"format": FORMAT, **asdict(source), "path": utf8(str(source.path)), "fps": str(source.fps)}
    return {name: value for name, value in card.items() if value not in ("", ())}


def parse_source(card: Any) -> SourceVideo:  # noqa: ANN401 - whatever JSON can hold
    """The video of a description.

    Raises:
        ValueError: the fields do not describe a video.
    """
    try:
        source = _SOURCE.validate_python(card)
    except (ValueError, ArithmeticError) as error:
        raise ValueError("no description of a video") from error
    enough = not source.pictures or len(source.pictures) >= source.frames
    if card.get("format") != FORMAT or "\0" in str(source.path) or not enough:
        raise ValueError("no description of a video")
    return source


def read_made(table: Path) -> str | None:
    """The fingerprint of the model, video and settings of a table; None if unknown."""
    made = _read(source_path(table)).get("made")
    return None if made is None else str(made)


def read_results(described: Path) -> dict[str, list[str]]:
    """Digests of the result files that a description lists, by their names; none if it is damaged."""
    results = _read(described).get("results")
    if not isinstance(results, dict):
        return {}
    return {name: [str(one) for one in digests] for name, digests in results.items() if isinstance(digests, list)}


def read_path(described: Path) -> str | None:
    """Path of the video that a description is of; None if it is no description."""
    card = _read(described)
    return card["path"] if card.get("format") == FORMAT and isinstance(card.get("path"), str) else None


def _read(described: Path) -> dict[str, Any]:
    try:
        card = parse_json(stored(described).read_text(encoding="utf-8"))
    except (OSError, ValueError, ColocamError):  # a walk through folders finds whatever has such a name
        return {}
    return card if isinstance(card, dict) else {}


def read_source(table: Path) -> SourceVideo:
    """Read the description beside a localization table."""
    path = stored(source_path(table))
    try:
        card = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ColocamError(
            f"{path} is missing, so the video of {table.name} is unknown: name it with `videos`"
        ) from error
    except (OSError, ValueError) as error:
        raise ColocamError(f"{path} cannot be read: restore it, or name the video with `videos`") from error
    try:
        return parse_source(card)
    except ValueError as error:
        raise ColocamError(f"{path} does not describe a video: restore it, or name the video with `videos`") from error
