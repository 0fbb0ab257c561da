"""A film for the tests of commands."""

import pytest


@pytest.fixture
def film(tmp_path, make_video, square_video):
    """A folder with one film of 20 frames."""
    return make_video(tmp_path / "films" / "film.mp4", square_video("cat", 77, 20, (80, 60))[0])
