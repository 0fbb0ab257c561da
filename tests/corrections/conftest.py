"""Tables whose labels were corrected elsewhere."""

import pytest

from label_scenes import row, write_table


@pytest.fixture
def table(tmp_path):
    """``boxes/video.csv``: 40 frames of 97×71 at 25 frames/s, the same box of a cat in frames 0 to 29, then none."""
    rows = [row(frame, (10, 20, 50, 60) if frame < 30 else None) for frame in range(40)]
    return write_table(tmp_path / "boxes" / "video.csv", rows, video="video.mp4")


@pytest.fixture
def brief():
    """``brief(corrections)``: frame → kind, corners of the boxes, key."""

    def brief(corrections):
        return {one.frame: (one.kind, *(tuple(box) for box in one.boxes), one.key) for one in corrections}

    return brief
