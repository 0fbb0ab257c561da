"""Description of the video of a localisation table: ``new.video.json`` beside ``new.csv``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError
from colocam.utils.files import utf8, write_json
from colocam.video.reader import DEFAULT_FPS, VideoInfo, VideoReader

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SourceVideo:
    """What label formats need to know of a video.

    Attributes:
        path: the file or folder of images, as it was read.
        width: pixels, as displayed.
        height: pixels, as displayed.
        fps: average frame rate.
        frames: number of frames.
        duration: seconds.
        pictures: names of the image files, where it is a folder of images.
    """

    path: Path
    width: int
    height: int
    fps: Fraction
    frames: int
    duration: float
    pictures: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the file, in characters that every format can hold."""
        return utf8(self.path.name)


def describe(path: Path, info: VideoInfo, frames: int, pictures: Sequence[Path] = ()) -> SourceVideo:
    """Describe a video by its header, the number of frames that were counted, and its image files, if any."""
    fps = info.fps or DEFAULT_FPS
    duration = info.duration or float(frames / fps)
    return SourceVideo(path.absolute(), info.width, info.height, fps, frames, duration, picture_names(pictures))


def picture_names(pictures: Sequence[Path]) -> tuple[str, ...]:
    """File names, in characters that every format can hold."""
    return tuple(utf8(picture.name) for picture in pictures)


def probe_source(path: Path) -> SourceVideo:
    """Describe a video by decoding it once, since the frame count of a header is often wrong."""
    with VideoReader(path) as video:
        for _ in video.frames():
            pass
        return describe(path, video.info, video.count, video.pictures)


def source_path(table: Path) -> Path:
    """Path of the description that belongs to a localisation table."""
    return table.with_name(f"{table.stem}.video.json")


def write_source(
    table: Path, source: SourceVideo, made: str | None = None, results: dict[str, list[str]] | None = None
) -> Path:
    """Write the description beside its table.

    Args:
        table: the localisation table.
        source: the video.
        made: fingerprint of model, video and settings.
        results: digests that each result file may have, by its name.
    """
    target = source_path(table)
    path = utf8(str(source.path))
    numbers = {"width": source.width, "height": source.height, "fps": str(source.fps), "frames": source.frames}
    more = {"made": made, "pictures": list(source.pictures) or None, "results": results}
    stated = {name: value for name, value in more.items() if value is not None}
    write_json(target, {"format": FORMAT, "path": path, **numbers, "duration": source.duration, **stated})
    return target


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
        card = json.loads(described.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return card if isinstance(card, dict) else {}


def read_source(table: Path) -> SourceVideo:
    """Read the description beside a localisation table."""
    path = source_path(table)
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ColocamError(
            f"{path} is missing, which describes the video of {table.name}: name the video with `videos`"
        ) from error
    except (OSError, ValueError) as error:
        raise ColocamError(f"{path} cannot be read: restore it, or name the video with `videos`") from error
    try:
        source = SourceVideo(
            Path(str(card["path"])),
            int(card["width"]),
            int(card["height"]),
            Fraction(card["fps"]),
            int(card["frames"]),
            float(card["duration"]),
            tuple(str(name) for name in card.get("pictures", ())),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ColocamError(f"{path} does not describe a video: restore it, or name the video with `videos`") from error
    sound = card.get("format") == FORMAT and min(source.width, source.height, float(source.fps), source.frames) > 0
    if source.pictures:  # they are opened and written by these names
        own = all(name == Path(name).name for name in source.pictures)
        sound = sound and own and len(source.pictures) >= source.frames
    if not sound:
        raise ColocamError(f"{path} does not describe a video: restore it, or name the video with `videos`")
    return source
