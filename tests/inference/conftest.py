"""A video for the tests of commands."""

import pytest


@pytest.fixture
def video(tmp_path, make_video, square_video):
    """A folder with one video of 20 frames."""
    return make_video(tmp_path / "videos" / "video.mp4", square_video("cat", 77, 20, (80, 60))[0])
