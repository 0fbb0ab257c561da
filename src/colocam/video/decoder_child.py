"""The decoder process: reads one video after the other, and puts its frames into shared memory.

Its messages, in the order of a video:

- from the parent: ``open`` (or ``images``), then ``frames`` with a choice; ``ring``, new shared memory; ``free``, how
  many slots were read; ``close`` at any time;
- from here: ``opened``; ``ring``, which asks for slots of a length; ``filled`` slots; ``alive``, while frames are
  decoded; ``said``, a line for the user; and one of ``closed`` and ``error``, after which the next video may come.

It does not import torch, so that it starts in a third of a second.

Tests: tests/video/test_fence.py.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cv2

from colocam.errors import ArgumentError, first_line
from colocam.types import VideoFrame
from colocam.utils.child_processes import Message, Parent
from colocam.utils.device import cores, keep_freed_memory
from colocam.utils.limited_child import be_modest, limit_memory
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import NO_RING, FrameLayout, open_ring
from colocam.video.images import image_frames
from colocam.video.input import MAX_PIXELS, PATIENCE, UnreadableError, VideoInput
from colocam.video.reader import VideoInfo, VideoReader

MIB = 2**20
BASE_BYTES = 512 * MIB
"""For the container, the tables of a codec and one frame in RGB of usual size."""
THREAD_BYTES = 16 * MIB
FRAMES_HELD = 24
"""Frames that a decoder keeps for reference and for their order, beside one per thread."""
PIXEL_BYTES = 8
"""Of the largest pixel formats, with the margins that decoders add."""
FRAMES_TOGETHER = 8
"""Frames of one message, where there are slots enough: a message takes a tenth of the time of decoding a frame."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one video. A frame has at most :data:`colocam.video.input.MAX_PIXELS`.

    Attributes:
        frames: frames that the header states, or that are decoded. The duration in seconds is no limit: a time-lapse
            of a frame a day is long, but costs little.
        open_seconds: to open it and decode its first frame.
        frame_seconds: from one decoded frame to the next.
        memory: bytes that decoding takes; None: what frames of its size may need.
        ahead: frames that are decoded before they are asked for. With 1, a frame comes as soon as it is decoded;
            otherwise several come together, which takes less time for all frames of a video.
    """

    frames: int = 2**27
    open_seconds: float = 2 * PATIENCE
    frame_seconds: float = 60.0
    memory: int | None = None
    ahead: int = 2**16

    def check_frames(self, name: str, frames: int) -> None:
        """Refuse a video of too many frames, stated or counted."""
        if frames > self.frames:
            raise UnreadableError(
                f"cannot read {name}: it has {frames} frames or more, the limit is {self.frames}: cut it into parts"
            )

    def bytes_for(self, pixels: int = MAX_PIXELS, threads: int = 0) -> int:
        """Bytes that decoding frames of so many pixels may take; ``threads`` as for the reader."""
        threads = min(threads or cores(), 16) + 1
        return self.memory or BASE_BYTES + threads * THREAD_BYTES + PIXEL_BYTES * pixels * (FRAMES_HELD + threads)


class _Closed(Exception):  # noqa: N818 - not an error
    """The parent wants no more frames of this video."""


def main(control: int, life: int) -> None:
    """Serve the parent until it ends."""
    parent = Parent(control, life)
    with suppress(OSError):
        be_modest()
    keep_freed_memory()
    parent.forward_stderr()
    with suppress(OSError), Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 2)  # libjpeg and libpng print what they think of an image
    decoder = _Decoder(parent)
    while (message := parent.receive()) is not None:
        decoder.serve(message)


class _Decoder:
    """Serves one request after the other."""

    def __init__(self, parent: Parent) -> None:
        self.parent = parent
        self.ring = NO_RING
        self.free = self.written = 0  # slots
        self.filled: list[tuple[int, float, tuple[int, ...]]] = []  # index, pts, (height, width)
        self.layout = FrameLayout()
        self.limits = Limits()

    def serve(self, message: Message) -> None:
        """Do what the first message of a video asks; stray messages of the video before are ignored."""
        works: dict[str, Callable[..., tuple[int, bool]]] = {"open": self.open, "images": self.images}
        if (work := works.get(message.pop("do"))) is None:
            return
        self.limits, self.filled = Limits(**message.pop("limits")), []
        self._empty_ring()
        with suppress(OSError):
            os.chdir(message.pop("folder"))  # relative names are those of the parent, whose folder may have changed
        try:
            count, ended = work(**message)
        except _Closed:
            count, ended = 0, False
        except Exception as error:  # noqa: BLE001 - one video must not end a batch
            self._flush()
            kind = MemoryError if isinstance(error, MemoryError) else type(error)  # NumPy has its own
            said = [error.argument, error.problem] if isinstance(error, ArgumentError) else [first_line(error)]
            self.parent.send({"do": "error", "kind": kind.__name__, "said": said})
            return
        self._flush()
        self.parent.send({"do": "closed", "count": count, "ended": ended})

    def open(self, address: str, format: str | None, threads: int, *, must_be_stored: bool) -> tuple[int, bool]:  # noqa: A002
        """Read a video; the number of its frames, and whether it was read to its end."""
        source = VideoInput(address, format, must_be_stored)
        limit_memory(self.limits.bytes_for(threads=threads))
        cv2.setNumThreads(threads or cores())

        def check(info: VideoInfo, frames: int) -> None:
            self.limits.check_frames(source.name, frames)
            limit_memory(self.limits.bytes_for(info.width * info.height, threads))

        with VideoReader(source, threads=threads, check=check, watch=partial(self._watch, source.name)) as reader:
            info = {**asdict(reader.info), "fps": None if reader.info.fps is None else str(reader.info.fps)}
            pictures = [str(path) for path in reader.pictures]
            self.parent.send(
                {"do": "opened", "info": info, "start": reader.start, "total": reader.total, "pictures": pictures}
            )
            message = self._await("frames")
            self.layout = FrameLayout(*message["layout"])
            choice = FrameChoice(**{**message["choice"], "frames": tuple(message["choice"]["frames"])})
            for frame in reader.frames(choice):
                self._put(frame)
            return reader.count, reader.ended

    def images(self, paths: list[str]) -> tuple[int, bool]:
        """Read image files, each of its own size; see :meth:`open`."""
        limit_memory(self.limits.bytes_for(threads=1))
        self.layout = FrameLayout()
        for frame in image_frames([Path(path) for path in paths]):
            self._watch(paths[0], frame.index)
            self._put(frame)
        return len(paths), True

    def _watch(self, name: str, index: int) -> None:
        self.parent.sign()
        self.limits.check_frames(name, index + 1)
        while self.parent.ready():
            self._listen()

    def _put(self, frame: VideoFrame) -> None:
        """Copy a frame into a free slot, and tell the parent."""
        size = frame.image.shape[:2]
        length = self.layout.length(*size)
        if length > self.ring.shape[1]:
            self._flush()
            self.parent.send({"do": "ring", "bytes": length})
            self._await("ring")
        while not self.free:
            self._flush()
            self._listen()
        self.layout.write(frame.image, self.ring[self.written % len(self.ring), :length])
        self.written += 1
        self.free -= 1
        self.filled.append((frame.index, frame.pts, size))
        if not self.free or len(self.filled) >= FRAMES_TOGETHER:
            self._flush()

    def _empty_ring(self) -> None:
        """Begin with slot 0, as the parent does."""
        self.written, self.free = 0, min(len(self.ring), self.limits.ahead)

    def _flush(self) -> None:
        """Tell the parent of the frames that it does not know of."""
        if self.filled:
            self.parent.send({"do": "filled", "frames": self.filled})
            self.filled = []

    def _await(self, what: str) -> Message:
        while (message := self._listen())["do"] != what:
            pass
        return message

    def _listen(self) -> Message:
        """Wait for a message and do what it asks."""
        message = self.parent.receive()
        if message is None:
            raise SystemExit  # nobody wants the frames
        if message["do"] == "close":
            raise _Closed
        if message["do"] == "ring":
            self.ring = open_ring(message["files"][0], message["bytes"])
            self._empty_ring()
        if message["do"] == "free":
            self.free += message["slots"]
        return message
