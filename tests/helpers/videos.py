"""Real video files, small and quick to make, and a collection of tagged ones."""

from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
import pytest


def quadrants(width: int = 64, height: int = 48) -> np.ndarray:
    """Red, green / blue, white: every rotation and mirroring of it looks different."""
    image = np.empty((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    image[: height // 2, width // 2 :] = (0, 255, 0)
    image[height // 2 :, : width // 2] = (0, 0, 255)
    image[height // 2 :, width // 2 :] = 255
    return image


def numbered(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Frames whose number is their gray level: frame i is 10 + 4·i everywhere (count ≤ 60)."""
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


@pytest.fixture(name="make_video", scope="session")
def make_video_fixture():
    """``make_video(path, frames, size=(w, h), …)`` writes a video file and returns its path.

    ``frames`` is a number of :func:`numbered` frames or a list of (H, W, 3) or (H, W, 4) uint8 pictures. ``times`` are
    presentation times in seconds (milliseconds are kept), ``rotation`` counter-clockwise degrees of display
    metadata, ``shape`` the width of a pixel by its height, ``audio`` "first" or "last" adds a silent track before or
    after the video.
    """
    return make_video


def make_video(
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
    shape=None,
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
        if shape is not None:
            stream.codec_context.sample_aspect_ratio = shape
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


TAGS = ("bus", "cat", "owl")
COLORS = {"bus": (220, 60, 40), "cat": (60, 200, 80), "owl": (70, 90, 230)}


class Collection(NamedTuple):
    """Tagged videos: ``videos/<tag>/<split>-<number>.mp4``, with their manifest and their true boxes."""

    videos: Path
    manifest: Path
    truth: Path


def square_video(tag: str, seed: int, frames: int = 5, size: tuple[int, int] = (48, 40)):
    """Pictures of a colored square that moves over noise, absent in the first one, and its boxes."""
    rng = np.random.default_rng([seed, TAGS.index(tag)])
    width, height = size
    side, x, y = 16, rng.integers(0, width - 24), rng.integers(0, height - 20)
    pictures, boxes = [], []
    for number in range(frames):
        picture = rng.integers(90, 140, (height, width, 3)).astype(np.uint8)
        if number:
            picture[y : y + side, x + number : x + number + side] = COLORS[tag]
        pictures.append(picture)
        boxes.append((x + number, y, x + number + side, y + side) if number else None)
    return pictures, boxes


def make_collection(folder: Path, videos: dict[str, int]) -> Collection:
    manifest, truth = ["path,tag,split,clip"], ["clip,frame,present,x1,y1,x2,y2"]
    for tag in TAGS:
        for place, split in enumerate(videos):
            for number in range(videos[split]):
                clip = f"{tag}/{split}-{number}"
                pictures, boxes = square_video(tag, 10 * place + number)
                make_video(folder / "videos" / f"{clip}.mp4", pictures)
                manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
                for frame, box in enumerate(boxes):
                    corners = ",".join(map(str, box)) if box else ",,,"
                    truth.append(f"{clip},{frame},{int(box is not None)},{corners}")
    (folder / "manifest.csv").write_text("\n".join(manifest) + "\n", encoding="utf-8")
    (folder / "truth.csv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    return Collection(folder / "videos", folder / "manifest.csv", folder / "truth.csv")


@pytest.fixture(name="square_video", scope="session")
def square_video_fixture():
    return square_video


@pytest.fixture(scope="session")
def collection(shared) -> Collection:
    """Three tags with 2 training, 1 validation and 1 test video each; read only."""
    folder = shared("collection", lambda folder: make_collection(folder, {"train": 2, "val": 1, "test": 1}))
    return Collection(folder / "videos", folder / "manifest.csv", folder / "truth.csv")
