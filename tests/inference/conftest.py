"""A model in an ONNX file, small videos, and a video of many shots."""

from pathlib import Path

import numpy as np
import pytest

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
COLORS = ((220, 60, 40), (60, 200, 80), (70, 90, 230))


@pytest.fixture(scope="session")
def model() -> Path:
    """Runs without torch, so that workers start quickly."""
    return STORED / "model.onnx"


@pytest.fixture
def make_videos(make_video):
    """``make_videos(folder, count)`` makes different videos of three frames."""

    def make(folder: Path, count: int) -> Path:
        for index in range(count):
            rng = np.random.default_rng(index)
            images = rng.integers(90, 140, (3, 48, 64, 3)).astype(np.uint8)
            for at, image in enumerate(images):
                image[8:24, 8 + at : 24 + at] = COLORS[index % 3]
            make_video(folder / f"{index // 50}" / f"{index:03}.mp4", images)
        return folder

    return make


@pytest.fixture(scope="session")
def video_of_shots(make_video, tmp_path_factory) -> Path:
    """A video of 6 shots of 9 to 40 frames, with objects that come and go; read only."""
    rng, images = np.random.default_rng(0), []
    for shot in range(6):
        background, (x, y) = rng.integers(0, 256, 3), rng.integers(0, 20, 2)
        for at in range(rng.integers(9, 40)):
            image = np.clip(background + rng.integers(-15, 15, (48, 64, 3)), 0, 255).astype(np.uint8)
            if rng.random() < 0.8:
                image[y : y + 16, x + at // 2 : x + at // 2 + 16] = COLORS[shot % 3]
            if rng.random() < 0.5:
                image[40:46, 2:10] = COLORS[(shot + 1) % 3]
            images.append(image)
    return make_video(tmp_path_factory.mktemp("shots") / "video-of-shots.mp4", images)


@pytest.fixture
def video(tmp_path, make_video, square_video):
    """A folder with one video of 20 frames."""
    return make_video(tmp_path / "videos" / "video.mp4", square_video("cat", 77, 20, (80, 60))[0])
