"""Read the frames of videos with their exact presentation times."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from math import ceil, inf
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import av
import cv2
import numpy as np
from av.container import InputContainer
from av.sidedata.sidedata import SideData
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream

from colocam.types import Image, VideoFrame
from colocam.video.frame_choice import ALL, DecodedFrame, FrameChoice
from colocam.video.frame_ring import IMAGES, FrameLayout
from colocam.video.images import folder_frames
from colocam.video.input import UnreadableError, VideoInput, open_input

DEFAULT_FPS = Fraction(25)
"""Frame rate of files that state none, and of folders of images."""

TIME_BASE = 1000
"""Frames per second from which on a header states its unit of time; slow motion is stored with the rate it plays at."""

ABORTING = frozenset({"yaf32le", "yaf32be"})
"""Pixel formats for which FFmpeg's conversion ends the process by a failed assertion."""


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What the header of a file states.

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


class VideoReader:
    """A video that is opened and read once, as a pipe or a camera must be; a context manager.

    Any pixel format becomes 8-bit RGB (transparent pixels over black), rotation and mirroring metadata are applied,
    and every frame has the size of the first one. Damaged frames are skipped.

    Args:
        source: a file, a folder of images, or another source that FFmpeg reads.
        threads: decoder threads, 0 for one per core.
        check: called with what the header states and its number of frames (0: unknown) before a frame is decoded.
        watch: called with the index of each decoded frame, whether it is chosen or not. Both may refuse the video.

    Attributes:
        info: what the header states; known when the video is open.
        start: presentation time of its first frame.
        count: index of the last frame that was read, plus one.
        total: number of frames that the container states, 0 where it states none.
        pictures: the image files by their index, where it is a folder of images.
        ended: whether all of it was read.

    Raises:
        UnreadableError: it cannot be read, or no frame can be decoded.
    """

    info: VideoInfo

    def __init__(
        self,
        source: Path | VideoInput,
        *,
        threads: int = 0,
        check: Callable[[VideoInfo, int], None] | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        self.source = source if isinstance(source, VideoInput) else VideoInput(str(source))
        self.threads = threads
        self._check, self._watch = check, watch
        self.count = self.total = 0
        self.ended = False
        self.pictures: tuple[Path, ...] = ()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = self.source.path if self.source.is_folder else None
            frames = self._open_container(stack) if folder is None else self._open_folder(folder)
            first = next(frames, None)
            if first is None:
                raise UnreadableError(f"cannot read {self.source.name}: no frame can be decoded (damaged or truncated)")
            height, width = first.image().shape[:2]
            self.info = replace(self.info, width=width, height=height)
            self.start = first.pts
            self._decoded = chain([first], frames)
            self._stack = stack.pop_all()
        return self

    def frames(self, choice: FrameChoice = ALL, layout: FrameLayout = IMAGES) -> Iterator[VideoFrame]:  # noqa: ARG002
        """Yield the chosen frames in order of presentation.

        The other frames are decoded too, which makes ``index`` exact in every container, but not converted to RGB.

        Args:
            choice: which frames.
            layout: what a decoder process gives of each frame; in this process it is the image.
        """
        size = (self.info.width, self.info.height)
        for wanted in choice(self._counted()):
            image = wanted.image()
            if (image.shape[1], image.shape[0]) != size:
                image = cv2.resize(image, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
            yield VideoFrame(wanted.index, wanted.pts, image)

    def estimate(self, choice: FrameChoice = ALL) -> int:
        """Estimate from the header how many frames :meth:`frames` will yield; 0 for unknown."""
        seconds, rate = self.info.duration or 0.0, self.info.fps or DEFAULT_FPS
        total, path = self.total or ceil(seconds * rate), self.source.path
        # A coded frame has at least one byte.
        most = path.stat().st_size if path is not None and self.source.is_stored and not self.pictures else inf
        if rate >= TIME_BASE or total > most or total >= (seconds or inf) * TIME_BASE:
            return 0
        return choice.estimate(total, float(rate))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _counted(self) -> Iterator[DecodedFrame]:
        for decoded in self._decoded:
            self.count = decoded.index + 1
            if self._watch is not None:
                self._watch(decoded.index)
            yield decoded
        self.ended = True

    def _open_container(self, stack: ExitStack) -> Iterator[DecodedFrame]:
        container, stream = stack.enter_context(open_input(self.source, self.threads))
        codec, fps = stream.codec_context, stream.average_rate or stream.guessed_rate
        self.info = VideoInfo(codec.width, codec.height, fps, _duration(container, stream))
        self.total = stream.frames
        if self._check is not None:
            self._check(self.info, self.total)
        upright = _Upright(self.source.name, self.threads)
        return (
            DecodedFrame(index, _time(index, frame, fps or DEFAULT_FPS), partial(upright, frame))
            for index, frame in enumerate(_decode_packets(container, stream, self.source.name))
            if not frame.is_corrupt
        )

    def _open_folder(self, folder: Path) -> Iterator[DecodedFrame]:
        self.pictures, frames = folder_frames(folder, DEFAULT_FPS)
        self.total = len(self.pictures)
        self.info = VideoInfo(0, 0, None, float(self.total / DEFAULT_FPS))
        return (DecodedFrame(one.index, one.pts, partial(np.asarray, one.image)) for one in frames)


def _time(index: int, frame: av.VideoFrame, rate: Fraction) -> float:
    stated = frame.time_base is not None and frame.pts is not None
    return float(frame.pts * frame.time_base if stated else index / rate)  # type: ignore[operator]


def _duration(container: InputContainer, stream: VideoStream) -> float | None:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def _decode_packets(container: InputContainer, stream: VideoStream, name: str) -> Iterator[av.VideoFrame]:
    """Yield every frame that can be decoded; damaged packets are skipped."""
    try:
        for packet in _packets(container, stream):
            try:
                frames = stream.codec_context.decode(packet)
            except MemoryError:  # not damage: frames must not be missing because of it
                raise
            except av.FFmpegError:
                continue
            yield from frames
    except MemoryError as error:
        raise UnreadableError(f"cannot read {name}: there is not enough memory to decode it: scale it down") from error


def _packets(container: InputContainer, stream: VideoStream) -> Iterator["av.Packet[VideoStream] | None"]:
    """Yield packets as far as the file can be read, then None, which flushes the decoder."""
    try:
        yield from container.demux(stream)
    except MemoryError:
        raise
    except av.FFmpegError:
        pass
    yield None


class _Upright:
    """Converts decoded frames to (H, W, 3) RGB with the display rotation applied.

    The display matrix is read once per rotation angle: PyAV's list of side data and its frame refer to each other, so
    reading it for every frame would keep decoded frames in memory until Python's cycle collector runs.
    """

    def __init__(self, name: str, threads: int = 0) -> None:
        self._name, self._threads = name, threads
        self._matrices: dict[int, tuple[int, int, int, int] | None] = {}
        self._reformatter = VideoReformatter()

    def __call__(self, frame: av.VideoFrame) -> Image:
        try:
            image = _to_rgb(frame, self._reformatter, self._threads)
        except MemoryError:
            raise
        except (av.FFmpegError, ValueError) as error:
            raise UnreadableError(
                f"cannot read {self._name}: FFmpeg cannot convert its pixel format {frame.format.name} to RGB: "
                "convert it to H.264 first"
            ) from error
        if frame.rotation not in self._matrices:
            self._matrices[frame.rotation] = _display_matrix(frame)
        matrix = self._matrices[frame.rotation]
        if matrix is None:
            return image
        a, b, c, d = matrix
        if abs(b) > abs(a):
            image = image.transpose(1, 0, 2)
            across = c
            down = b
        else:
            across, down = a, d
        return np.ascontiguousarray(image[:: -1 if down < 0 else 1, :: -1 if across < 0 else 1])


def _to_rgb(frame: av.VideoFrame, reformatter: VideoReformatter, threads: int) -> Image:
    """(H, W, 3) RGB of a decoded frame, as it is stored; ``threads`` convert it, 0: one per core."""
    if frame.format.name in ABORTING:
        raise ValueError(frame.format.name)
    if frame.format.name == "pal8" or any(component.is_alpha for component in frame.format.components):
        rgba = reformatter.reformat(frame, format="rgba", threads=threads).to_ndarray().astype(np.uint16)
        return ((rgba[..., :3] * rgba[..., 3:] + 127) // 255).astype(np.uint8)
    return cast("Image", reformatter.reformat(frame, format="rgb24", threads=threads).to_ndarray())


def _display_matrix(frame: av.VideoFrame) -> tuple[int, int, int, int] | None:
    """Display matrix: a stored pixel (x, y) is shown at (a·x + c·y, b·x + d·y); a … d are scaled 0 or ±1."""
    try:
        matrix = cast("SideData | None", frame.side_data.get("DISPLAYMATRIX"))
    except ValueError:  # PyAV cannot list kinds of side data newer than itself (EXIF for one), only give the angle
        quarter = round(frame.rotation / 90) % 4  # counter-clockwise
        return ((1, 0, 0, 1), (0, -1, 1, 0), (-1, 0, 0, -1), (0, 1, -1, 0))[quarter]
    if matrix is None:
        return None
    a, b, _, c, d = np.frombuffer(bytes(matrix), np.int32)[:5].tolist()
    return a, b, c, d
