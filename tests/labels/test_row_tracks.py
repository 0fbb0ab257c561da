"""Which boxes are the same object, and when it is seen."""

import pytest

from colocam.errors import ColocamError
from colocam.labels.labeled_videos import read_videos
from tests.helpers.label_scenes import row, write_table

BOX = (1, 2, 30, 40)


@pytest.fixture
def read(tmp_path):
    return lambda rows: read_videos([write_table(tmp_path / "a.csv", rows)], [])[0]


def seen(video):
    return [(one.tag, [video.rows.frame[part].tolist() for part in one.stretches]) for one in video.tracks]


def boxes(frames, **more):
    return [row(frame, BOX, **more) for frame in frames]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (  # one object per class
            [row(0, BOX), row(1, BOX, "dog"), row(2, BOX), row(3), row(4, BOX)],
            [("cat", [[0], [2], [4]]), ("dog", [[1]])],
        ),
        (  # two boxes of a class in one frame: each is an object
            [row(0, BOX), row(1, BOX), row(1, BOX), row(0, BOX, "dog"), row(1, BOX, "dog")],
            [("cat", [[0]]), ("dog", [[0, 1]]), ("cat", [[1]]), ("cat", [[1]])],
        ),
        (  # stated tracks
            [*boxes(range(3), track=7), *boxes(range(4), track=0), row(4)],
            [("cat", [[0, 1, 2]]), ("cat", [[0, 1, 2, 3]])],
        ),
        (  # the class of most boxes
            [row(0, BOX, "dog", 1), row(1, BOX, "cat", 1), row(2, BOX, "dog", 1)],
            [("dog", [[0, 1, 2]])],
        ),
        (boxes([0, 1, 3, 4, 6, 7, 9, 10]), [("cat", [[0, 1, 3, 4, 6, 7, 9, 10]])]),  # uneven steps of a lower rate
        (boxes([*range(10), *range(20, 30)]), [("cat", [[*range(10)], [*range(20, 30)]])]),  # rows were removed
    ],
)
def test_rows_become_tracks(read, rows, expected):
    video = read(rows)
    assert seen(video) == expected
    assert [one.id for one in video.tracks] == list(range(1, len(expected) + 1))
    assert all(video.track_of(at) is track for track in video.tracks for at in track.rows.tolist())


@pytest.mark.parametrize("step", [1, 2, 5])
def test_frames_that_are_not_listed_do_not_end_a_stretch(read, step):
    frames = list(range(0, 40, step))
    assert seen(read(boxes(frames))) == [("cat", [frames])]
    middle = len(frames) // 2
    rows = [row(frame, None if frame == frames[middle] else BOX) for frame in frames]
    assert seen(read(rows)) == [("cat", [frames[:middle], frames[middle + 1 :]])]


def test_two_boxes_of_one_track_in_a_frame(read):
    video = read([row(3, BOX, track=2), row(3, BOX, track=2)])
    with pytest.raises(ColocamError, match="a: frame 3 has two boxes of track 2: give one of them a different track"):
        _ = video.tracks
