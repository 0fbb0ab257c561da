"""Frames that people checked: counted, and exported alone; and what an export says that it could not keep."""

import json

import numpy as np
import pytest
import yaml

from colocam.errors import ColocamError
from colocam.labels import Options, export, import_labels, write_corrections
from colocam.labels.frame_states import FrameCounts, count_frames, marked_videos
from colocam.labels.labeled_videos import read_videos
from tests.helpers.label_scenes import row, write_table

BOX = (10, 20, 50, 60)


@pytest.fixture
def tables(tmp_path):
    """Two videos: of the first, frames 2 and 6 are checked, 3 to 5 follow from them; of the second, none is."""
    states = {2: "checked", 3: "interpolated", 4: "interpolated", 5: "interpolated", 6: "checked"}
    rows = [row(frame, BOX if frame % 2 else None, state=states.get(frame, "")) for frame in range(10)]
    rows.append(row(6, (60, 20, 90, 60), "dog"))  # the model's, in a frame that a person has checked
    return [
        write_table(tmp_path / "a.csv", rows, video="a.mp4"),
        write_table(tmp_path / "b.csv", [row(frame, BOX, state="of a spreadsheet") for frame in range(4)]),
    ]


def frames_of(out):
    """Video → frames that a COCO file lists."""
    content = json.loads((out / "annotations" / "instances_default.json").read_text())
    names = {video["id"]: video["name"] for video in content["videos"]}
    frames = {}
    for image in content["images"]:
        frames.setdefault(names[image["video_id"]], []).append(image["frame_index"])
    return frames


def test_frames_are_counted_once(tables):
    videos = read_videos(tables, [])
    assert count_frames(videos[:1]) == FrameCounts(checked=2, interpolated=3, unchecked=5)
    assert count_frames(videos) == FrameCounts(checked=2, interpolated=3, unchecked=9)


@pytest.mark.parametrize(("frames", "kept"), [("checked", [2, 6]), ("answered", [2, 3, 4, 5, 6])])
def test_unchecked_frames_are_left_out(tables, tmp_path, frames, kept):
    told = []
    out = export(tables, "coco", tmp_path / "out", options=Options(frames=frames), tell=told.append)
    assert frames_of(out) == {"a": kept}
    assert told == [f"frames: {frames}: {len(kept)} of 14 in 1 of 2 videos"]
    out = export(tables, "yolo", tmp_path / "yolo", options=Options(frames=frames))
    names = [line[-10:-4] for line in (out / "train.txt").read_text().splitlines()]
    assert names == [f"{frame:06d}" for frame in kept]
    assert yaml.safe_load((out / "data.yaml").read_text())["names"] == {0: "cat", 1: "dog"} or frames == "checked"


def test_the_state_stays_in_tables_that_are_exported(tables, tmp_path):
    export(tables, "csv", tmp_path / "out")
    assert count_frames(read_videos([tmp_path / "out" / "a.csv"], [])) == FrameCounts(2, 3, 5)
    assert "state" not in (tmp_path / "out" / "b.csv").read_text().splitlines()[0]


def test_frames_of_corrections_and_of_the_queue(tmp_path):
    """Key frames of corrections are checked, other changed ones follow from them; a queue lists what was looked at."""
    table = write_table(tmp_path / "a.csv", [row(frame, BOX, track=0) for frame in range(12)], frames=12)
    out = export([table], "cvat", tmp_path / "cvat", options=Options(tolerance=0))
    text = (out / "a.xml").read_text()
    last = text.index('frame="11"')
    (out / "a.xml").write_text(text[:last] + text[last:].replace("60.00", "50.00"))  # boxes before follow the last one
    imported = import_labels(out, "cvat", tables=[table])
    changed = [one.frame for one in imported.corrections if one.kind == "box"]
    corrections = write_corrections(tmp_path / "corrections.csv", imported.corrections)
    queue = tmp_path / "queue.csv"
    queue.write_text("video,frame\na,3\nclip one.mp4,5\n")
    videos = read_videos([table], [])
    assert changed[-1] == 11
    assert len(changed) > 5
    assert count_frames(marked_videos(videos, corrections)) == FrameCounts(1, len(changed) - 1, 12 - len(changed))
    assert count_frames(marked_videos(videos, queue)) == FrameCounts(2, 0, 10)


def test_a_choice_that_leaves_nothing_is_refused(tables, tmp_path, colocam):
    done = colocam("export", tables[1], "--to", "coco", "-o", tmp_path / "out", "--frames", "checked")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "error: --frames 'checked' leaves nothing: no frame of the tables is known to be checked" in done.err
    done = colocam("export", tables[0], "--to", "coco", "-o", tmp_path / "out", "--frames", "some")
    assert "error: --frames must be one of all, answered, checked, got 'some'" in done.err
    queue = tmp_path / "queue.csv"
    queue.write_text("video,frame\nother,3\n")
    with pytest.raises(ColocamError, match="no table belongs to the video 'other'"):
        export(tables, "coco", tmp_path / "out", options=Options(frames="checked", checked=queue))


@pytest.mark.parametrize("to", ["mot", "cvat", "label-studio", "coco", "csv"])
def test_an_export_says_where_a_track_got_one_class(tmp_path, to):
    rows = [row(frame, BOX, "fish" if frame < 3 else "cat", 0) for frame in range(9)]
    table = write_table(tmp_path / "a.csv", rows, frames=9)
    told = []
    export([table], to, tmp_path / "out", tell=told.append)
    one_class = f"a: 1 track changes its class; {to} holds one, the most frequent: 3 boxes got it"
    assert told == ([one_class] if to in {"mot", "cvat", "label-studio"} else [])


def test_no_box_is_lost_between_chosen_frames(tables, tmp_path):
    """The rows of a chosen frame stay whole, also those of another object."""
    out = export(tables[:1], "coco", tmp_path / "out", options=Options(frames="checked"))
    content = json.loads((out / "annotations" / "instances_default.json").read_text())
    (annotation,) = content["annotations"]
    assert np.allclose(annotation["bbox"], [60, 20, 30, 40])
