"""Fixtures of all rooms: real video files, small and quick to make."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import av
import numpy as np
import pytest


class MakeVideo(Protocol):
    def __call__(
        self,
        path: Path,
        frames: int | Sequence[np.ndarray] = 10,
        size: tuple[int, int] = (64, 48),
        fps: Fraction | int = 25,
        *,
        codec: str = "libx264",
        pix_fmt: str = "yuv420p",
        times: Sequence[float] | None = None,
        rotation: int | None = None,
        mirrored: bool = False,
        audio: str | None = None,
        options: dict[str, str] | None = None,
        container: dict[str, str] | None = None,
    ) -> Path: ...


def quadrants(width: int = 64, height: int = 48) -> np.ndarray:
    """Red, green / blue, white: every rotation and mirroring of it looks different."""
    image = np.empty((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    image[: height // 2, width // 2 :] = (0, 255, 0)
    image[height // 2 :, : width // 2] = (0, 0, 255)
    image[height // 2 :, width // 2 :] = 255
    return image


def numbered(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Frames whose number is their grey level: frame i is 10 + 4·i everywhere (count ≤ 60)."""
    return [np.full((height, width, 3), 10 + 4 * number, np.uint8) for number in range(count)]


def number_of(image: np.ndarray) -> int:
    """Which of the :func:`numbered` frames this is, after lossy coding."""
    return round((float(image.mean()) - 10) / 4)


@pytest.fixture(name="quadrants")
def quadrants_fixture():
    return quadrants


@pytest.fixture(name="numbered")
def numbered_fixture():
    return numbered


@pytest.fixture(name="number_of")
def number_of_fixture():
    return number_of


@pytest.fixture
def make_video() -> MakeVideo:
    """``make_video(path, frames, size=(w, h), …)`` writes a video file and returns its path.

    ``frames`` is a number of :func:`numbered` frames or a list of (H, W, 3) or (H, W, 4) uint8 pictures. ``times`` are
    presentation times in seconds (milliseconds are kept), ``rotation`` counter-clockwise degrees of display
    metadata, ``audio`` "first" or "last" adds a silent track before or after the video.
    """
    return _make_video


def _make_video(
    path,
    frames=10,
    size=(64, 48),
    fps=25,
    *,
    codec="libx264",
    pix_fmt="yuv420p",
    times=None,
    rotation=None,
    mirrored=False,
    audio=None,
    options=None,
    container=None,
):
    pictures = numbered(frames, *size) if isinstance(frames, int) else list(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", container_options=container or {}) as output:
        sound = output.add_stream("aac", rate=16000, layout="mono") if audio == "first" else None
        stream = output.add_stream(codec, rate=fps, options=options or {})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = pix_fmt
        stream.codec_context.thread_count = 1
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation is not None:
            stream.set_display_rotation(rotation, hflip=mirrored)
        if audio == "last":
            sound = output.add_stream("aac", rate=16000, layout="mono")
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(
                np.ascontiguousarray(picture), "rgba" if picture.shape[2] == 4 else "rgb24"
            )
            if times is not None:
                frame.pts, frame.time_base = round(times[number] * 1000), Fraction(1, 1000)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
        if sound is not None:
            for block in range(10):
                silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
                silence.rate, silence.pts = 16000, 1024 * block
                output.mux(sound.encode(silence))
            output.mux(sound.encode(None))
    return path
