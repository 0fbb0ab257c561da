"""Sources of frames: everything that FFmpeg opens (a file, a pipe, a camera, an address), or a folder of images."""

import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from colocam.errors import ArgumentError, ColocamError

STDIN = "-"
LIVE_SCHEMES = frozenset({"rtsp", "rtsps", "rtmp", "rtmps", "rtp", "udp", "srt"})
DEVICES = frozenset({"v4l2", "video4linux2", "dshow", "vfwcap", "avfoundation", "x11grab", "gdigrab", "kmsgrab"})
"""FFmpeg's names of cameras and screens."""
PATIENCE = 30.0
"""Seconds without data after which a network stream ends."""


class UnreadableError(ColocamError):
    """A source without a readable frame; a caller that reads many files may skip it."""


@dataclass(frozen=True, slots=True)
class VideoInput:
    """A source of frames.

    Attributes:
        address: path of a file or of a folder of images, ``-`` for the standard input, an address such as ``rtsp://…``,
            or the name of a device.
        format: FFmpeg's name of the input format, e.g. ``v4l2`` for a camera on Linux; None: FFmpeg detects it.
    """

    address: str
    format: str | None = None

    @property
    def path(self) -> Path | None:
        """The path, or None if the address is not a path."""
        if self.address == STDIN or "://" in self.address:
            return None
        path = Path(self.address)
        return None if self.format is not None and not path.exists() else path

    @property
    def is_stored(self) -> bool:
        """Whether it is a file or a folder of images, which can be read more than once."""
        return self.path is not None and (self.path.is_file() or self.path.is_dir())

    @property
    def live(self) -> bool:
        """Whether it delivers frames in real time, without an end."""
        if self.format in DEVICES or urlsplit(self.address).scheme.lower() in LIVE_SCHEMES:
            return True
        return self.path is not None and self.path.is_char_device()

    @property
    def name(self) -> str:
        """Name for error messages."""
        return "the standard input" if self.address == STDIN else self.address

    @property
    def stem(self) -> str:
        """Name of the result files, without an ending."""
        if self.address == STDIN:
            return "stdin"
        if self.path is not None:
            return (self.path.resolve().name or "pictures") if self.path.is_dir() else self.path.stem
        parts = urlsplit(self.address)
        word = Path(parts.path).stem if parts.netloc else self.address
        return re.sub(r"[^\w.-]+", "_", word or parts.hostname or "").strip("_.") or "video"


@contextmanager
def open_input(source: Path | VideoInput, threads: int) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open the first video track that is not a cover image.

    Args:
        source: what to open.
        threads: decoder threads, 0 for one per core; a live source uses one, since each further thread delays a frame.
    """
    source = VideoInput(str(source)) if isinstance(source, Path) else source
    address, kind = _address_and_format(source)
    try:
        container = av.open(address, format=kind, timeout=PATIENCE if "://" in address else None)
    except av.FFmpegError as error:
        why = "not a whole video file" if source.format is None else f"not as format {source.format}"
        piped = "; an mp4 with its index at the end must be given as a file" if source.address == STDIN else ""
        raise UnreadableError(f"cannot read {source.name}: {why} ({error.strerror}{piped})") from error
    except ValueError as error:
        raise ArgumentError("format", f"{source.format}: FFmpeg knows no such format (a camera: v4l2)") from error
    with container:
        streams = [one for one in container.streams.video if not one.disposition & Disposition.attached_pic]
        if not streams:
            raise UnreadableError(f"cannot read {source.name}: it has no video track")
        stream = streams[0]
        stream.codec_context.thread_count = 1 if source.live else threads
        stream.thread_type = "AUTO"
        yield container, stream


def _address_and_format(source: VideoInput) -> tuple[str, str | None]:
    """Address and format for FFmpeg; refuses what cannot be a video."""
    if source.address == STDIN:
        if sys.stdin is not None and sys.stdin.isatty():
            raise ColocamError("'-' is a video from a pipe: cat VIDEO | colocam localize RUN - -o OUT")
        return "pipe:0", source.format
    path = source.path
    if path is None:
        return source.address, source.format
    try:
        mode = path.stat()
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise UnreadableError(f"cannot read {path}: {why}") from error
    if stat.S_ISDIR(mode.st_mode):
        raise UnreadableError(f"cannot read {path}: it is a folder, not a video file")
    if stat.S_ISREG(mode.st_mode) and mode.st_size == 0:
        raise UnreadableError(f"cannot read {path}: the file is empty (0 bytes)")
    camera = stat.S_ISCHR(mode.st_mode) and sys.platform == "linux"
    # An absolute name, since FFmpeg takes "a:b.mp4" for a protocol called a.
    return str(path.absolute()), source.format or ("v4l2" if camera else None)
