"""What is known of the video that a table of boxes was made from: ``new.video.json`` beside ``new.csv``."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from colocam.data.video import DEFAULT_FPS, VideoInfo, decode, probe
from colocam.errors import ColocamError
from colocam.files import write_json

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SourceVideo:
    """A video file, as those who label it need to know it.

    Attributes:
        path: the file, where it was when it was read.
        width: pixels, as displayed.
        height: pixels, as displayed.
        fps: average frame rate.
        frames: number of frames.
        duration: seconds.
    """

    path: Path
    width: int
    height: int
    fps: Fraction
    frames: int
    duration: float

    @property
    def file(self) -> str:
        """Name of the file, in characters that every format can hold."""
        return self.path.name.encode("utf-8", "backslashreplace").decode("utf-8")


def describe(path: Path, info: VideoInfo, frames: int) -> SourceVideo:
    """Describe a video by what it says of itself and the number of frames that were counted."""
    fps = info.fps or DEFAULT_FPS
    return SourceVideo(path.absolute(), info.width, info.height, fps, frames, info.duration or float(frames / fps))


def probe_source(path: Path) -> SourceVideo:
    """Describe a video by decoding it once: headers are often wrong about the number of frames."""
    info = probe(path)
    return describe(path, info, max(frame.index for frame in decode(path)) + 1)


def source_path(table: Path) -> Path:
    """Where the description of the video of a table lies."""
    return table.with_name(f"{table.stem}.video.json")


def write_source(table: Path, source: SourceVideo, made: str | None = None) -> Path:
    """Write the description beside its table, with a digest of what the table was made of."""
    target = source_path(table)
    path = str(source.path).encode("utf-8", "backslashreplace").decode("utf-8")
    numbers = {"width": source.width, "height": source.height, "fps": str(source.fps), "frames": source.frames}
    of = {} if made is None else {"made": made}
    write_json(target, {"format": FORMAT, "path": path, **numbers, "duration": source.duration, **of})
    return target


def read_made(table: Path) -> str | None:
    """The digest of what a table was made of, None where nothing says it."""
    try:
        made = json.loads(source_path(table).read_text(encoding="utf-8"))["made"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(made)


def read_source(table: Path) -> SourceVideo:
    """Read the description that lies beside a table."""
    path = source_path(table)
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ColocamError(
            f"{path} is missing, which says how large and long the video of {table.name} is: give --video FILE"
        ) from error
    except (OSError, ValueError) as error:
        raise ColocamError(f"{path} cannot be read: restore it or give --video FILE") from error
    try:
        source = SourceVideo(
            Path(str(card["path"])),
            int(card["width"]),
            int(card["height"]),
            Fraction(card["fps"]),
            int(card["frames"]),
            float(card["duration"]),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ColocamError(f"{path} does not describe a video: restore it or give --video FILE") from error
    if card.get("format") != FORMAT or min(source.width, source.height, float(source.fps), source.frames) <= 0:
        raise ColocamError(f"{path} does not describe a video: restore it or give --video FILE")
    return source
