"""Read videos of unknown origin: a decoder process opens and decodes them, under limits of time, memory and size.

A decoder that hangs, crashes or exceeds a limit is ended and costs its one video (:class:`UnreadableError`); the next
video gets a new one. Frames, times, errors and warnings are those of :mod:`colocam.video.reader`, which runs in the
decoder. Cameras, pipes and network streams are read in this process: they are not repeatable, and a person watches.
So is every video where no decoder process can be started, after a line that says so.
"""

import atexit
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Self

from colocam.errors import ArgumentError, ColocamError
from colocam.types import Image, VideoFrame
from colocam.utils.child_processes import CAN_START, ChildProcess, Message
from colocam.utils.device import cores
from colocam.utils.progress import say
from colocam.video.decoder_child import Limits
from colocam.video.description import MOST_FRAMES, SourceVideo, describe
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.frame_ring import IMAGES, NO_RING, RING_BYTES, FrameLayout, open_ring, ring_file
from colocam.video.images import image_frames
from colocam.video.input import DecoderEndedError, DecoderLostError, UnreadableError, VideoInput
from colocam.video.reader import VideoInfo, VideoReader

MOST_VIDEOS = 500
"""Videos after which a decoder is replaced, should a library lose memory with each."""
TICK = 1.0
"""Seconds of one wait. A process that was stopped and goes on counts one of them, however long it was stopped."""
SECONDS_TO_CLOSE = 2.0
START_SECONDS = 60.0
"""More for the first video of a decoder, which must start first."""
RAISED: dict[str, type[ColocamError]] = {one.__name__: one for one in (ArgumentError, ColocamError, UnreadableError)}
"""Errors of the reader that are raised here as they are."""
LIMITS = Limits()
ENDED_FROM_OUTSIDE = frozenset({"signal SIGKILL", "signal SIGTERM", "signal SIGBUS"})
"""The system kills a process when memory runs out; SIGBUS: the disk behind shared memory is full."""


class DecoderProcess:
    """A decoder process, see :mod:`colocam.video.decoder_child`, and the video that it reads.

    Attributes:
        busy: whether it reads a video.
        count: frames of the video, when it is read.
        ended: whether the video was read to its end.
    """

    def __init__(self) -> None:
        self._process = ChildProcess("colocam.video.decoder_child")
        self._ring = NO_RING
        self._taken = 0  # slots that were read
        self._videos, self._started = 0, False
        self._name, self._limits = "", Limits()
        self.busy = False
        self.count, self.ended = 0, False

    def begin(self, name: str, limits: Limits, **asked: Any) -> None:  # noqa: ANN401 - fields of a message
        """Ask for a video, whose name is for errors."""
        self.busy, self._name, self._limits = True, name, limits
        self._taken = 0
        self._videos += 1
        self.send({**asked, "limits": asdict(limits), "folder": _working_folder()})

    def send(self, message: Message, *files: int) -> None:
        """Send a message about the video."""
        try:
            self._process.channel.send(message, *files)
        except OSError as error:
            raise self._crashed() from error

    def receive(self, seconds: float) -> Message:
        """The next message about the video, except those that are dealt with here.

        Args:
            seconds: how long the decoder may work without decoding a frame.

        Raises:
            ColocamError: as the reader in the decoder raised it; or the decoder hung, crashed or took too much memory.
        """
        while True:
            message = self._next(seconds)
            match message["do"]:
                case "said":
                    say(message["text"])
                case "alive":
                    continue
                case "ring":
                    self._renew_ring(message["bytes"])
                case "error":
                    raise self._error(message)
                case _:
                    return message

    def frames(self, layout: FrameLayout) -> Iterator[VideoFrame]:
        """Yield the frames that were asked for with this layout."""
        while (message := self.receive(self._limits.frame_seconds))["do"] != "closed":
            for index, pts, (height, width) in message["frames"]:
                memory = self._ring[self._taken % len(self._ring), : layout.length(height, width)].copy()
                self._taken += 1
                yield layout.read(memory, index, pts, (height, width))
            self.send({"do": "free", "slots": len(message["frames"])})
        self.count, self.ended = message["count"], message["ended"]

    def close(self) -> None:
        """Give up the video, if it is being read; end the process if it does not stop soon."""
        try:
            if self.busy:
                self.send({"do": "close"})
            while self.busy:
                self._next(SECONDS_TO_CLOSE)
        except UnreadableError:  # it hung or crashed, and was ended
            pass

    def kill(self) -> None:
        """End the process."""
        self.busy = False
        self._process.kill()

    @property
    def reusable(self) -> bool:
        """Whether it may read another video."""
        fit = self._ring.size <= RING_BYTES and self._videos < MOST_VIDEOS
        return fit and not self.busy and not self._process.channel.closed

    def _renew_ring(self, slot_bytes: int) -> None:
        file = ring_file(slot_bytes)
        self._ring = open_ring(os.dup(file), slot_bytes)
        self._taken = 0
        try:
            self.send({"do": "ring", "bytes": slot_bytes}, file)
        finally:
            os.close(file)

    def _next(self, seconds: float) -> Message:
        if not self._started:
            seconds += START_SECONDS
        left = seconds
        while not self._process.channel.ready(min(TICK, left)):
            left -= TICK
            if left <= 0:
                raise self._lost(f"its decoder gave no frame for {seconds:g} s and was ended")
        message = self._process.channel.receive()
        if message is None:
            raise self._crashed()
        self._started = True
        if message["do"] in {"closed", "error"}:
            self.busy = False
        return message

    def _crashed(self) -> DecoderLostError:
        how = self._process.how_it_ended()
        if how in ENDED_FROM_OUTSIDE:
            self.kill()
            sentence = f"cannot read {self._name} now: its decoder was ended from outside ({how}), most often because"
            return DecoderEndedError(f"{sentence} memory ran out: close other programs and try again")
        return self._lost(f"its decoder crashed ({how})")

    def _lost(self, why: str) -> DecoderLostError:
        self.kill()
        return DecoderLostError(f"cannot read {self._name}: {why}: convert it to H.264 first, or leave it out")

    def _error(self, message: Message) -> ColocamError:
        """What the reader raised."""
        kind, said = message["kind"], message["said"]
        if kind in RAISED:
            return RAISED[kind](*said)
        if kind == "MemoryError":
            return self._lost("its decoder took more memory than frames of its size need and was ended")
        return self._lost(f"its decoder failed ({kind}: {said[0]})")


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # it was deleted; absolute names need none
        return "/"


_idle: list[DecoderProcess] = []
_lock = threading.Lock()


@contextmanager
def borrowed_decoder() -> Iterator[DecoderProcess]:
    """A decoder that is idle, or a new one; it is kept for the next video if it is fit for it."""
    with _lock:
        decoder = _idle.pop() if _idle else None
    decoder = decoder or DecoderProcess()
    try:
        yield decoder
    finally:
        try:
            decoder.close()
        finally:
            with _lock:
                kept = decoder.reusable and len(_idle) < cores()
                if kept:
                    _idle.append(decoder)
            if not kept:
                decoder.kill()


def start_decoder() -> None:
    """Start a decoder, unless one is there, while other work goes on; it is ready a third of a second later."""
    with _lock:
        if CAN_START and not _idle:
            _idle.append(DecoderProcess())


def end_decoders() -> None:
    """End the idle decoders; the next video starts a new one."""
    with _lock:
        while _idle:
            _idle.pop().kill()


def _forget_decoders() -> None:
    """A forked process must not talk to the decoders of its parent."""
    global _lock  # noqa: PLW0603 - another thread may have held it
    _lock = threading.Lock()
    _idle.clear()


atexit.register(end_decoders)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_decoders)


@cache
def _warn_of_no_fence() -> None:
    say("warning: on this system reading a video has no memory or time limit: open only videos you trust")


class FencedReader(VideoReader):
    """A :class:`VideoReader` of a stored video, in a decoder process.

    Args:
        source: a file or a folder of images.
        threads: decoder threads, 0 for one per core.
        limits: what decoding may cost.
    """

    def __init__(self, source: Path | VideoInput, *, threads: int = 0, limits: Limits = LIMITS) -> None:
        super().__init__(source, threads=threads)
        self.limits = limits

    def __enter__(self) -> Self:
        if not CAN_START:
            _warn_of_no_fence()
            self._check = lambda _, frames: self.limits.check_frames(self.source.name, frames)
            return super().__enter__()
        source = self.source
        fields = {"address": source.address, "format": source.format, "must_be_stored": source.must_be_stored}
        with ExitStack() as stack:
            self._decoder = stack.enter_context(borrowed_decoder())
            self._decoder.begin(source.name, self.limits, do="open", threads=self.threads, **fields)
            opened = self._decoder.receive(self.limits.open_seconds)
            fps = opened["info"].pop("fps")
            self.info = VideoInfo(**opened["info"], fps=None if fps is None else Fraction(fps))
            self.start, self.total = opened["start"], opened["total"]
            self.pictures = tuple(Path(path) for path in opened["pictures"])
            self._stack = stack.pop_all()
        return self

    def frames(self, choice: FrameChoice = ALL, layout: FrameLayout = IMAGES) -> Iterator[VideoFrame]:
        """Yield the chosen frames in order of presentation; to be called once."""
        if not CAN_START:
            yield from super().frames(choice, layout)
            return
        self._decoder.send({"do": "frames", "choice": asdict(choice), "layout": layout})
        for frame in self._decoder.frames(layout):
            self.count = frame.index + 1
            yield frame
        self.count, self.ended = self._decoder.count, self._decoder.ended


def open_video(source: Path | VideoInput, *, threads: int = 0, limits: Limits = LIMITS) -> VideoReader:
    """A reader that suits the source: with a fence if it is stored; if not, in this process."""
    source = source if isinstance(source, VideoInput) else VideoInput(str(source))
    if source.is_stored or source.must_be_stored:
        return FencedReader(source, threads=threads, limits=limits)
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
    """Yield the frames of a video in order of presentation, see :class:`VideoReader`.

    Args:
        source: a file, a folder of images, or another source that FFmpeg reads.
        start: first second (pts) to yield; 0 means from the first frame, whatever its time.
        end: second (pts) to stop at (exclusive), None for the end of the file.
        choice: which frames to yield, in place of ``start`` and ``end``.
        threads: decoder threads, 0 for one per core.
        limits: what decoding may cost.

    Raises:
        UnreadableError: it cannot be read, or no frame can be decoded.
    """
    if choice is None and end is not None and end <= start:
        return
    with open_video(source, threads=threads, limits=limits) as video:
        yield from video.frames(choice or FrameChoice(start=start if start > 0 else None, end=end))


def decode_images(paths: Sequence[Path]) -> Iterator[VideoFrame]:
    """:func:`colocam.video.images.image_frames`, with a fence."""
    if not CAN_START:
        _warn_of_no_fence()
        yield from image_frames(list(paths))
        return
    with borrowed_decoder() as decoder:
        decoder.begin(str(paths[0]), LIMITS, do="images", paths=[str(path) for path in paths])
        yield from decoder.frames(IMAGES)


def probe(path: Path, *, limits: Limits = LIMITS) -> VideoInfo:
    """Read size, frame rate and duration; also decodes the first frame, to check that the file can be decoded."""
    with FencedReader(path, threads=1, limits=limits) as video:
        return video.info


def estimate_frames(path: Path, *, start: float = 0.0, end: float | None = None) -> int:
    """Estimate from the header how many frames :func:`decode` will yield; 0 for unknown."""
    with FencedReader(VideoInput(str(path), must_be_stored=True), threads=1) as video:
        if end is not None and end <= start:
            return 0
        return video.estimate(FrameChoice(start=start if start > 0 else None, end=end))


def probe_source(path: Path) -> SourceVideo:
    """Describe a video by decoding it once, since the frame count of a header is often wrong."""
    with open_video(path) as video:
        for _ in video.frames(FrameChoice(frames=(MOST_FRAMES, None))):  # all are decoded, none is converted
            pass
        return describe(path, video)


def read_image(path: Path) -> Image | None:
    """:func:`colocam.video.images.read_image`, with a fence."""
    try:
        return next(decode_images([path])).image
    except (UnreadableError, StopIteration):
        return None
