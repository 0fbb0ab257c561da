"""Write H.264 videos that browsers play, plain or annotated."""

from contextlib import ExitStack
from fractions import Fraction
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter
from av.video.stream import VideoStream

from colocam.errors import ColocamError
from colocam.types import Image, Localization, Overlay
from colocam.utils.files import atomic_path
from colocam.utils.progress import say
from colocam.video.drawing import draw_objects
from colocam.video.input import VideoError
from colocam.video.reader import DEFAULT_FPS, VideoInfo

MIN_FPS, MAX_FPS = Fraction(1, 1001), Fraction(1000)
"""Stated frame rates outside this range are set to its nearest end; frames keep their own times."""
MAX_GAP = (2**31 - 1) // 6
"""Most ticks between two frames. mp4 holds the offset of a B-frame in 31 bits, which may span six frames."""

MAX_SIDE = 16_384
"""Most pixels of a side that x264 encodes."""
USUAL, QUICK = {"preset": "veryfast", "crf": "20"}, {"preset": "superfast", "crf": "23"}
"""Options of x264 that give the same quality (lab/notes/speed.md)."""


class VideoWriter:
    """H.264 in mp4 (yuv420p, BT.709, index in front) as a context manager.

    The file appears under its name when the block ends without an error, never before. An odd width or height is
    made even by repeating the last column or row, as 4:2:0 needs. Equal frames give equal bytes. A gap between two
    frames is at most :data:`MAX_GAP` ticks, about an hour, since mp4 cannot hold longer ones.

    Args:
        path: the file.
        width: pixels.
        height: pixels.
        fps: frame rate.
        gop: write a key frame at least every ``gop`` frames, and no B-frames, so that a player can show any frame at
            once; None: as the encoder chooses, which gives smaller files.
        quick: encode in two thirds of the time; files of the same quality are a tenth larger.

    Example:
        >>> with VideoWriter(Path("out.mp4"), 64, 48, fps=25) as video:  # doctest: +SKIP
        ...     video.write(image)
    """

    def __init__(
        self,
        path: Path,
        width: int,
        height: int,
        fps: Fraction | float | None = None,
        *,
        gop: int | None = None,
        quick: bool = False,
    ) -> None:
        self.path = path
        self.width = width
        self.height = height
        self.fps = min(max(Fraction(fps or DEFAULT_FPS), MIN_FPS), MAX_FPS).limit_denominator(1001)
        self._gop = gop
        self._quality = QUICK if quick else USUAL
        self._tick = -1
        self._count = 0
        self._shortened = 0
        self._reformatter = VideoReformatter()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if max(self.width, self.height) > MAX_SIDE:
            raise VideoError(
                f"cannot write {self.path}: H.264 holds at most {MAX_SIDE} pixels per side, got {self.width}×"
                f"{self.height}: write the localization table only (`no_video`)"
            )
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
        # Without cpu-independent, x264's AVX-512 code gives other bytes from one run to the next.
        codec.options = {**self._quality, "x264-params": "cpu-independent=1"}
        if self._gop is not None:
            codec.gop_size, codec.max_b_frames = self._gop, 0
        codec.thread_count = 1  # the encoder's output depends on the number of threads
        codec.colorspace, codec.color_range = 1, 1  # BT.709, limited: players guess when untagged
        codec.color_primaries, codec.color_trc = 1, 1

    def write(self, image: Image, pts: float | None = None) -> None:
        """Append a frame.

        Args:
            image: (height, width, 3) uint8 RGB.
            pts: presentation time in seconds; None: the next time of a constant frame rate.
        """
        if image.shape != (self.height, self.width, 3):
            raise ColocamError(
                f"{self.path}: image must be ({self.height}, {self.width}, 3), got {image.shape}: resize it first"
            )
        if self.height % 2 or self.width % 2:
            image = np.pad(image, ((0, self.height % 2), (0, self.width % 2), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_numpy_buffer(np.ascontiguousarray(image), format="rgb24")
        # One for all frames: each frame's own would first prepare the conversion anew.
        frame = self._reformatter.reformat(
            frame,
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709,
            dst_color_range=ColorRange.MPEG,
            threads=1,  # as the encoder; by default one per core, whose start takes longer than the conversion
        )
        base = self._stream.codec_context.time_base
        time = self._count / self.fps if pts is None else Fraction(pts)
        # Two frames of one time, or times that run backwards, would be refused by the container.
        tick = max(round(time / base) - self._shortened, self._tick + 1)
        if (excess := tick - self._tick - MAX_GAP) > 0:
            if not self._shortened:
                say(f"warning: {self.path}: long gaps between frames are shortened to {float(MAX_GAP * base):.0f} s")
            self._shortened += excess
            tick -= excess
        self._tick = tick
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


class AnnotatedVideo:
    """An mp4 that browsers play, with the box and the label on each frame; a context manager.

    Frames keep the presentation times of their localizations.

    Args:
        path: the file to write.
        info: size and rate of the video.
        overlay: what is drawn beside the box, see :func:`colocam.video.drawing.draw_objects`.
    """

    def __init__(self, path: Path, info: VideoInfo, overlay: Overlay = "contour") -> None:
        self._overlay = overlay
        self._writer = VideoWriter(path, info.width, info.height, info.fps, quick=True)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def write(self, image: Image, localization: Localization, *others: Localization) -> None:
        """Append ``image`` (H, W, 3), RGB at the video's own size, with what was found in this frame drawn on it."""
        self._writer.write(draw_objects(image, localization, *others, overlay=self._overlay), localization.pts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._writer.__exit__(kind, error, trace)
