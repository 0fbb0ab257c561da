"""Which boxes are the same object, and when it is seen."""

import pytest

from colocam.errors import ColocamError
from colocam.labels.labelled_videos import read_videos
from label_scenes import row, write_table


@pytest.fixture
def read(tmp_path):
    return lambda rows: read_videos([write_table(tmp_path / "a.csv", rows)], [])[0]


BOX = (1, 2, 30, 40)


def seen(video):
    return [(one.tag, [video.rows.frame[part].tolist() for part in one.stretches]) for one in video.tracks]


def test_boxes_without_tracks_are_one_object_per_class(read):
    video = read([row(0, BOX), row(1, BOX, "dog"), row(2, BOX), row(3), row(4, BOX)])
    assert seen(video) == [("cat", [[0], [2], [4]]), ("dog", [[1]])]
    assert [one.id for one in video.tracks] == [1, 2]
    assert [video.track_of(at).id for at in (0, 1, 2, 4)] == [1, 2, 1, 1]


def test_a_crowd_without_tracks_is_many_objects(read):
    video = read([row(0, BOX), row(1, BOX), row(1, BOX), row(0, BOX, "dog"), row(1, BOX, "dog")])
    assert sorted(seen(video)) == [("cat", [[0]]), ("cat", [[1]]), ("cat", [[1]]), ("dog", [[0, 1]])]


def test_tracks_are_those_of_the_table(read):
    video = read([row(f, BOX, track=t) for f in range(3) for t in (7, 0)] + [row(3, BOX, track=0), row(4)])
    assert seen(video) == [("cat", [[0, 1, 2]]), ("cat", [[0, 1, 2, 3]])]


def test_a_track_has_the_class_of_most_of_its_boxes(read):
    video = read([row(0, BOX, "dog", 1), row(1, BOX, "cat", 1), row(2, BOX, "dog", 1)])
    assert seen(video) == [("dog", [[0, 1, 2]])]


@pytest.mark.parametrize("step", [1, 2, 5])
def test_frames_that_are_not_listed_do_not_end_a_stretch(read, step):
    frames = list(range(0, 40, step))
    assert seen(read([row(frame, BOX) for frame in frames])) == [("cat", [frames])]
    gone = frames[: len(frames) // 2], frames[len(frames) // 2 + 1 :]
    rows = [row(frame, None if frame not in gone[0] + gone[1] else BOX) for frame in frames]
    assert seen(read(rows)) == [("cat", list(gone))]


def test_uneven_steps_of_a_lower_rate(read):
    frames = [0, 1, 3, 4, 6, 7, 9, 10]
    assert seen(read([row(frame, BOX) for frame in frames])) == [("cat", [frames])]


def test_rows_taken_out_end_a_stretch(read):
    frames = [*range(10), *range(20, 30)]
    assert seen(read([row(frame, BOX) for frame in frames])) == [("cat", [frames[:10], frames[10:]])]


def test_two_boxes_of_one_track_in_a_frame(read):
    video = read([row(3, BOX, track=2), row(3, BOX, track=2)])
    with pytest.raises(ColocamError, match="a: frame 3 has two boxes of track 2: give one of them another track"):
        _ = video.tracks


def test_rows_of_frames_are_those_that_a_loop_finds(read):
    rows = [row(5, BOX), row(2), row(2, BOX, "dog"), row(5, BOX, "dog"), row(9), row(0, BOX)]
    video = read(rows)
    expected = {int(frame): [] for frame in sorted(set(video.rows.frame.tolist()))}
    for index, (frame, box) in enumerate(zip(video.rows.frame.tolist(), video.rows.box.tolist(), strict=True)):
        if box[0] == box[0]:
            expected[frame].append(index)
    assert dict(video.objects_of) == expected
    assert 3 not in video.objects_of
