"""What decoding one video may cost; a decoder that takes more is ended."""

import sys
from dataclasses import dataclass

from colocam.utils.device import cores
from colocam.video.input import MAX_PIXELS, PATIENCE, UnreadableError

MIB = 2**20
BASE_BYTES = 512 * MIB
"""For the container, the tables of a codec and one frame in RGB of usual size."""
THREAD_BYTES = 16 * MIB
FRAMES_HELD = 24
"""Frames that a decoder keeps for reference and for their order, beside one per thread."""
PIXEL_BYTES = 8
"""Of the largest pixel formats, with the margins that decoders add."""


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


def limit_memory(more: int) -> None:
    """Let this process take ``more`` bytes than it has now; allocations beyond fail. On Linux only.

    Counted are the private pages that it may write to (``RLIMIT_DATA``): not the slots of frames, and not the address
    space that allocators only reserve.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not on Windows

    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - for each video
        data = int(file.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = data + more
    resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))
