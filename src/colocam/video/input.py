"""Sources of frames: everything that FFmpeg opens (a file, a pipe, a camera, an address), or a folder of images."""

import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from colocam.errors import ArgumentError, ColocamError, first_line

PLAYLISTS = frozenset({"hls", "dash", "concat", "imf", "sdp", "webm_dash_manifest", "avisynth", "vapoursynth"})
"""FFmpeg's formats of playlists and of scripts."""
_MARKS = {b"#EXTM3U": "hls", b"<MPD": "dash", b"ffconcat": "concat", b"<CompositionPlaylist": "imf", b"v=0": "sdp"}
STDIN = "-"
LIVE_SCHEMES = frozenset({"rtsp", "rtsps", "rtmp", "rtmps", "rtp", "udp", "srt"})
DEVICES = frozenset({"v4l2", "video4linux2", "dshow", "vfwcap", "avfoundation", "x11grab", "gdigrab", "kmsgrab"})
"""FFmpeg's names of cameras and screens."""
PATIENCE = 30.0
"""Seconds without data after which a network stream ends, and after which a stored file must be open."""
MAX_PIXELS = 2**27
"""Most pixels of a frame, 16,384 × 8,192; as RGB it takes 0.4 GB."""
ANY_ENCODING: dict[str, Any] = {"metadata_errors": "replace"} if int(version("av").partition(".")[0]) < 19 else {}
"""Text beside a video, such as its title, may be in any encoding; PyAV 19 takes it as it is."""


class VideoError(ColocamError):
    """What is wrong with one video; a caller that processes many videos may skip it."""


class UnreadableError(VideoError):
    """A source without a readable frame."""


class DecoderLostError(UnreadableError):
    """The decoder of a video hung, crashed or took too much memory; another attempt may succeed."""


class DecoderEndedError(DecoderLostError):
    """The decoder of a video was ended from outside, most often since memory ran out; the video may be sound."""


def check_pixels(name: str, width: int, height: int) -> None:
    """Refuse frames of more than :data:`MAX_PIXELS`, as the header states them, before memory is taken for one."""
    if width * height > MAX_PIXELS:
        raise UnreadableError(
            f"cannot read {name}: {width}×{height} pixels, the limit is {MAX_PIXELS / 1e6:.0f} million: scale it down"
        )


@dataclass(frozen=True, slots=True)
class VideoInput:
    """A source of frames.

    Attributes:
        address: path of a file or of a folder of images, ``-`` for the standard input, an address such as ``rtsp://…``,
            or the name of a device.
        format: FFmpeg's name for the input format, e.g. ``v4l2`` for a camera on Linux; None: FFmpeg detects it, but a
            playlist in a file is refused.
        must_be_stored: refuse pipes and devices, as for what a walk through folders finds: a pipe without a writer
            would block the other videos for ever.
    """

    address: str
    format: str | None = None
    must_be_stored: bool = False

    @property
    def path(self) -> Path | None:
        """The path, or None if the address is not a path."""
        if self.address == STDIN or "://" in self.address:
            return None
        path = Path(self.address)
        return None if self.format is not None and not _mode(path) else path

    @property
    def is_stored(self) -> bool:
        """Whether it is a file or a folder of images, which can be read more than once."""
        return self.is_folder or (self.path is not None and stat.S_ISREG(_mode(self.path)))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder; never an error, unlike ``Path.is_dir`` for a name that is too long."""
        return self.path is not None and stat.S_ISDIR(_mode(self.path))

    @property
    def live(self) -> bool:
        """Whether it delivers frames in real time, without an end."""
        if self.format in DEVICES or urlsplit(self.address).scheme.lower() in LIVE_SCHEMES:
            return True
        return self.path is not None and stat.S_ISCHR(_mode(self.path))

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
            return (self.path.resolve().name or "pictures") if self.is_folder else self.path.stem
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
    stored = source.is_stored
    options = {"max_pixels": str(MAX_PIXELS)}
    only = {"format_whitelist": ",".join(sorted(av.formats_available - PLAYLISTS))} if stored and kind is None else {}
    # The timeout of reading costs the interpreter's lock at each read, which a video on a disk does not need.
    timeout: float | tuple[float, None] | None = (PATIENCE, None) if stored else None
    if "://" in address:
        timeout = PATIENCE
    try:
        container = av.open(
            address, format=kind, options=options, container_options=only, timeout=timeout, **ANY_ENCODING
        )
    except av.FFmpegError as error:
        if only and (playlist := _playlist_format(address)):
            raise UnreadableError(
                f"cannot read {source.name}: it is a playlist, which points to other files: give those, or set "
                f"`format` to {playlist} if you trust it"
            ) from error
        why = "not a complete video file" if source.format is None else f"not as format {source.format}"
        piped = "; an mp4 with its index at the end must be given as a file" if source.address == STDIN else ""
        raise UnreadableError(f"cannot read {source.name}: {why} ({error.strerror}{piped})") from error
    except ValueError as error:
        if source.format is None:
            raise UnreadableError(
                f"cannot read {source.name}: not a complete video file ({first_line(error)})"
            ) from error
        raise ArgumentError("format", f"{source.format}: FFmpeg knows no such format (a camera: v4l2)") from error
    with container:
        streams = [one for one in container.streams.video if not one.disposition & Disposition.attached_pic]
        if not streams:
            raise UnreadableError(f"cannot read {source.name}: it has no video track")
        stream = streams[0]
        if stream.codec_context is None:  # PyAV's types do not say so
            raise UnreadableError(
                f"cannot read {source.name}: FFmpeg has no decoder for its codec: convert it to H.264 first"
            )
        check_pixels(source.name, stream.codec_context.width, stream.codec_context.height)
        stream.codec_context.options = options  # frames may become larger later
        stream.codec_context.thread_count = 1 if source.live else threads
        stream.thread_type = "AUTO"
        yield container, stream


def _mode(path: Path) -> int:
    """Mode of what a path leads to; 0 if it leads nowhere, goes in a circle or is no valid name."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def _playlist_format(address: str) -> str | None:
    """FFmpeg's name of the playlist that a file is; None if it is no known one."""
    with suppress(OSError), Path(address).open("rb") as file:
        beginning = file.read(4096)
        return next((name for mark, name in _MARKS.items() if mark in beginning), None)
    return None


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
    if source.must_be_stored and not stat.S_ISREG(mode.st_mode):
        raise UnreadableError(f"cannot read {path}: it is a pipe or a device: name it alone to read from it")
    if stat.S_ISREG(mode.st_mode) and mode.st_size == 0:
        raise UnreadableError(f"cannot read {path}: the file is empty (0 bytes)")
    camera = stat.S_ISCHR(mode.st_mode) and sys.platform == "linux"
    # An absolute name, since FFmpeg takes "a:b.mp4" for a protocol called a.
    return str(path.absolute()), source.format or ("v4l2" if camera else None)
