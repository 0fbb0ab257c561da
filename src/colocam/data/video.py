"""Video files: frames with exact presentation times in, H.264 that browsers play out."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.container import InputContainer
from av.sidedata.sidedata import SideData
from av.stream import Disposition
from av.video.stream import VideoStream

from colocam.errors import ColocamError
from colocam.files import atomic_path

Image = npt.NDArray[np.uint8]
"""(H, W, 3) RGB."""

DEFAULT_FPS = Fraction(25)
"""For files that state no frame rate."""


class UnreadableError(ColocamError):
    """A file that holds no frame we can read; those who read many files may leave it out and go on."""


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What a file says about itself.

    Attributes:
        width: pixels, as displayed (rotation metadata applied).
        height: pixels, as displayed.
        fps: average frame rate, None where the file states none.
        duration: seconds, None where the file states none.
    """

    width: int
    height: int
    fps: Fraction | None
    duration: float | None


@dataclass(frozen=True, slots=True)
class VideoFrame:
    """One decoded frame.

    Attributes:
        index: number of the frame in its file, from 0.
        pts: presentation time in seconds, as the file states it (it need not start at 0).
        image: (H, W, 3) uint8 RGB, as displayed.
    """

    index: int
    pts: float
    image: Image


def probe(path: Path) -> VideoInfo:
    """Read size, frame rate and duration; the first frame is decoded, so a file that passes can be decoded."""
    with _open(path, threads=1) as (container, stream):
        first = next((frame for frame in _decode_packets(container, stream) if not frame.is_corrupt), None)
        if first is None:
            raise _nothing_decodes(path)
        height, width = _to_rgb(first).shape[:2]
        return VideoInfo(width, height, stream.average_rate or stream.guessed_rate, _duration(container, stream))


def estimate_frames(path: Path, *, start: float = 0.0, end: float | None = None) -> int:
    """About how many frames :func:`decode` will yield, by the file's header alone; 0 where it does not say."""
    with _open(path, threads=1) as (container, stream):
        duration = _duration(container, stream)
        rate = stream.average_rate or stream.guessed_rate or DEFAULT_FPS
        if start <= 0 and end is None and stream.frames:
            return stream.frames
        last = min(end or inf, duration or inf)
        return 0 if last == inf else max(0, ceil((last - start) * rate))


def decode(path: Path, *, start: float = 0.0, end: float | None = None, threads: int = 0) -> Iterator[VideoFrame]:
    """Yield the frames with ``start`` ≤ pts < ``end`` (seconds) in order of presentation.

    Any pixel format becomes 8-bit RGB (transparent pixels over black), rotation and mirroring metadata are applied,
    and every frame has the size of the first one. Frames before ``start`` are decoded too, since only so is
    ``index`` exact in every container, but they are not converted. Damaged frames are left out.

    Args:
        path: a file that FFmpeg reads.
        start: first second to yield; 0 means from the first frame, whatever its time.
        end: second to stop at (exclusive), None for the end of the file.
        threads: decoder threads, 0 for one per core.

    Raises:
        UnreadableError: the file cannot be read or not one frame of it decodes.
    """
    decoded = False
    size: tuple[int, int] | None = None
    with _open(path, threads=threads) as (container, stream):
        rate = stream.average_rate or stream.guessed_rate or DEFAULT_FPS
        for index, frame in enumerate(_decode_packets(container, stream)):
            if frame.is_corrupt:
                continue
            decoded = True
            pts = float(index / rate if frame.time_base is None or frame.pts is None else frame.pts * frame.time_base)
            if end is not None and pts >= end:
                break
            if start > 0 and pts < start:
                continue
            image = _to_rgb(frame)
            size = size or (image.shape[1], image.shape[0])
            if (image.shape[1], image.shape[0]) != size:
                image = cv2.resize(image, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
            yield VideoFrame(index, pts, image)
    if not decoded:
        raise _nothing_decodes(path)


class VideoWriter:
    """H.264 in mp4 (yuv420p, BT.709, index in front) as a context manager.

    The file appears under its name when the block ends without an error, never before. An odd width or height is
    made even by repeating the last column or row, as 4:2:0 needs. Equal frames give equal bytes.

    Example:
        >>> with VideoWriter(Path("out.mp4"), 64, 48, fps=25) as video:  # doctest: +SKIP
        ...     video.write(image)
    """

    def __init__(self, path: Path, width: int, height: int, fps: Fraction | float | None = None) -> None:
        self.path = path
        self.width = width
        self.height = height
        self.fps = Fraction(fps or DEFAULT_FPS).limit_denominator(1001)
        self._tick = -1
        self._count = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            temporary = stack.enter_context(atomic_path(self.path))
            options = {"movflags": "+faststart", "fflags": "+bitexact"}
            self._container = stack.enter_context(
                av.open(str(temporary.absolute()), "w", format="mp4", container_options=options)
            )
            self._stream = self._container.add_stream("libx264", rate=self.fps)
            self._configure(self._stream)
            self._stack = stack.pop_all()
        return self

    def _configure(self, stream: VideoStream) -> None:
        stream.width, stream.height = self.width + self.width % 2, self.height + self.height % 2
        stream.pix_fmt = "yuv420p"
        # A multiple of the rate's numerator holds constant rates exactly, and other times to about 10 µs.
        ticks = self.fps.numerator * ceil(90_000 / self.fps.numerator)
        codec = stream.codec_context
        codec.time_base = Fraction(1, ticks)
        codec.options = {"preset": "veryfast", "crf": "20"}
        codec.thread_count = 1  # the encoder's output depends on the number of threads
        codec.colorspace, codec.color_range = 1, 1  # BT.709, limited: players guess when untagged
        codec.color_primaries, codec.color_trc = 1, 1

    def write(self, image: Image, pts: float | None = None) -> None:
        """Append a frame.

        Args:
            image: (height, width, 3) uint8 RGB.
            pts: when it is shown, in seconds; None for the next moment of a constant frame rate.
        """
        if image.shape != (self.height, self.width, 3):
            raise ColocamError(
                f"{self.path}: a frame of shape {image.shape} in a video of {self.width}×{self.height}: resize it first"
            )
        if self.height % 2 or self.width % 2:
            image = np.pad(image, ((0, self.height % 2), (0, self.width % 2), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_numpy_buffer(np.ascontiguousarray(image), format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        base = self._stream.codec_context.time_base
        time = self._count / self.fps if pts is None else Fraction(pts)
        # Two frames of one time, or times that run backwards, would be refused by the container.
        self._tick = max(round(time / base), self._tick + 1)
        frame.pts, frame.time_base = self._tick, base
        self._count += 1
        self._container.mux(self._stream.encode(frame))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with self._stack as stack:
            if error is not None:
                return stack.__exit__(kind, error, trace)
            if self._count == 0:
                raise ColocamError(f"cannot write {self.path}: a video needs at least one frame")
            self._container.mux(self._stream.encode(None))
        return None


@contextmanager
def _open(path: Path, *, threads: int) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open the first video track that is not a cover picture."""
    if not path.exists():
        raise UnreadableError(f"cannot read {path}: there is no such file")
    if path.is_dir():
        raise UnreadableError(f"cannot read {path}: it is a folder, not a video file")
    if path.stat().st_size == 0:
        raise UnreadableError(f"cannot read {path}: the file is empty (0 bytes)")
    try:
        # An absolute name, since FFmpeg takes "a:b.mp4" for a protocol called a.
        container = av.open(str(path.absolute()))
    except av.FFmpegError as error:
        raise UnreadableError(f"cannot read {path}: not a whole video file ({error.strerror})") from error
    with container:
        streams = [one for one in container.streams.video if not one.disposition & Disposition.attached_pic]
        if not streams:
            raise UnreadableError(f"cannot read {path}: it has no video track")
        stream = streams[0]
        stream.codec_context.thread_count = threads
        stream.thread_type = "AUTO"
        yield container, stream


def _duration(container: InputContainer, stream: VideoStream) -> float | None:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def _decode_packets(container: InputContainer, stream: VideoStream) -> Iterator[av.VideoFrame]:
    """Yield every frame that decodes; damage costs the packets it hit, not the rest of the file."""
    for packet in _packets(container, stream):
        try:
            frames = stream.codec_context.decode(packet)
        except av.FFmpegError:
            continue
        yield from frames


def _packets(container: InputContainer, stream: VideoStream) -> Iterator["av.Packet[VideoStream] | None"]:
    """Yield packets as far as the file can be read, then None: the decoder still holds frames."""
    with suppress(av.FFmpegError):
        yield from container.demux(stream)
    yield None


def _nothing_decodes(path: Path) -> UnreadableError:
    return UnreadableError(f"cannot read {path}: not one frame of it can be decoded (damaged or cut off)")


def _to_rgb(frame: av.VideoFrame) -> Image:
    """(H, W, 3) RGB of a decoded frame, upright."""
    if frame.format.name == "pal8" or any(component.is_alpha for component in frame.format.components):
        rgba = frame.to_ndarray(format="rgba").astype(np.uint16)
        image = ((rgba[..., :3] * rgba[..., 3:] + 127) // 255).astype(np.uint8)
    else:
        image = cast("Image", frame.to_ndarray(format="rgb24"))
    return _upright(frame, image)


def _upright(frame: av.VideoFrame, image: Image) -> Image:
    """Apply the display matrix: a stored pixel (x, y) is shown at (a·x + c·y, b·x + d·y), a…d near 0 or ±1."""
    try:
        matrix = cast("SideData | None", frame.side_data.get("DISPLAYMATRIX"))
    except ValueError:  # PyAV cannot list kinds of side data newer than itself (EXIF for one), only give the angle
        return np.ascontiguousarray(np.rot90(image, round(frame.rotation / 90)))
    if matrix is None:
        return image
    a, b, _, c, d = np.frombuffer(bytes(matrix), np.int32)[:5].tolist()
    if abs(b) > abs(a):
        image, across, down = image.transpose(1, 0, 2), c, b
    else:
        across, down = a, d
    return np.ascontiguousarray(image[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])
