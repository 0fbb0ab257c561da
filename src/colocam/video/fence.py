"""Read videos of unknown origin: a decoder process opens and decodes them, under limits of time, memory and size.

A decoder that hangs, crashes or exceeds a limit is ended and costs its one video (:class:`UnreadableError`); the next
video gets a new one. Frames, times, errors and warnings are those of :mod:`colocam.video.reader`, which runs in the
decoder. Cameras, pipes and network streams are read in this process: they are not repeatable, and a person watches.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Self

from colocam.types import Image, VideoFrame
from colocam.video.decoder_process import borrowed_decoder
from colocam.video.decoding_limits import Limits
from colocam.video.description import MOST_FRAMES, SourceVideo, describe
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.frame_ring import FrameLayout
from colocam.video.input import UnreadableError, VideoInput
from colocam.video.reader import VideoInfo, VideoReader

IMAGES, LIMITS = FrameLayout(), Limits()


class FencedReader(VideoReader):
    """A :class:`VideoReader` of a stored video, in a decoder process.

    Args:
        source: a file or a folder of images.
        threads: decoder threads, 0 for one per core.
        layout: what to give of each frame; by default its image.
        limits: what decoding may cost.
    """

    def __init__(
        self,
        source: Path | VideoInput,
        *,
        threads: int = 0,
        layout: FrameLayout = IMAGES,
        limits: Limits = LIMITS,
    ) -> None:
        super().__init__(source, threads=threads)
        self.layout = layout
        self.limits = limits

    def __enter__(self) -> Self:
        one = self.source
        asked = {"address": one.address, "format": one.format, "must_be_stored": one.must_be_stored}
        with ExitStack() as stack:
            self._decoder = stack.enter_context(borrowed_decoder())
            self._decoder.begin(one.name, self.limits, do="open", threads=self.threads, **asked)
            opened = self._decoder.receive(self.limits.open_seconds)
            fps = opened["info"].pop("fps")
            self.info = VideoInfo(**opened["info"], fps=None if fps is None else Fraction(fps))
            self.start, self.total = opened["start"], opened["total"]
            self.pictures = tuple(Path(path) for path in opened["pictures"])
            self._stack = stack.pop_all()
        return self

    def frames(self, choice: FrameChoice = ALL) -> Iterator[VideoFrame]:
        """Yield the chosen frames in order of presentation; to be called once."""
        self._decoder.begin_frames(choice, self.layout)
        while (frame := self._decoder.next_frame()) is not None:
            self.count = frame.index + 1
            yield frame
        self.count, self.ended = self._decoder.count, self._decoder.ended


def open_video(
    source: Path | VideoInput, *, threads: int = 0, layout: FrameLayout = IMAGES, limits: Limits = LIMITS
) -> VideoReader:
    """A reader that suits the source: with a fence if it is stored; if not, in this process and without a layout."""
    source = source if isinstance(source, VideoInput) else VideoInput(str(source))
    if source.is_stored or source.must_be_stored:
        return FencedReader(source, threads=threads, layout=layout, limits=limits)
    return VideoReader(source, threads=threads)


def decode(
    source: Path | VideoInput,
    *,
    start: float = 0.0,
    end: float | None = None,
    choice: FrameChoice | None = None,
    threads: int = 0,
    limits: Limits = LIMITS,
) -> Iterator[VideoFrame]:
    """:func:`colocam.video.reader.decode`, with a fence if the source is stored."""
    if choice is None and end is not None and end <= start:
        return
    with open_video(source, threads=threads, limits=limits) as video:
        yield from video.frames(choice or FrameChoice(start=start if start > 0 else None, end=end))


def decode_images(paths: Sequence[Path], *, limits: Limits = LIMITS) -> Iterator[VideoFrame]:
    """:func:`colocam.video.images.image_frames`, with a fence."""
    with borrowed_decoder() as decoder:
        decoder.begin(str(paths[0]), limits, do="images", paths=[str(path) for path in paths])
        while (frame := decoder.next_frame()) is not None:
            yield frame


def probe(path: Path, *, limits: Limits = LIMITS) -> VideoInfo:
    """:func:`colocam.video.reader.probe`, with a fence."""
    with FencedReader(path, threads=1, limits=limits) as video:
        return video.info


def estimate_frames(path: Path, *, start: float = 0.0, end: float | None = None, limits: Limits = LIMITS) -> int:
    """:func:`colocam.video.reader.estimate_frames`, with a fence."""
    with borrowed_decoder() as decoder:
        decoder.begin(str(path), limits, do="estimate", path=str(path), start=start, end=end)
        return int(decoder.receive(limits.open_seconds)["frames"])


def probe_source(path: Path, *, limits: Limits = LIMITS) -> SourceVideo:
    """Describe a video by decoding it once, since the frame count of a header is often wrong."""
    with open_video(path, limits=limits) as video:
        for _ in video.frames(FrameChoice(frames=(MOST_FRAMES, None))):  # all are decoded, none is converted
            pass
        return describe(path, video.info, video.count, video.pictures)


def read_image(path: Path, *, limits: Limits = LIMITS) -> Image | None:
    """:func:`colocam.video.images.read_image`, with a fence."""
    try:
        return next(decode_images([path], limits=limits)).image
    except (UnreadableError, StopIteration):
        return None
