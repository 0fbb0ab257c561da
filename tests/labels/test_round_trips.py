"""Export, then import: without a change, every frame is accepted and every box is the exported one."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.labels import Options, export, import_labels, read_corrections, readable, review_tables, write_corrections
from colocam.labels.labeled_videos import read_videos
from colocam.labels.table_files import tables_of
from tests.helpers.label_scenes import FRAMES, exported, row, scenes, write_table

PRECISION = {"cvat": 0.0051, "label-studio": 1e-6, "coco": 1e-9, "yolo": 1e-5, "voc": 1.0, "mot": 1.1e-3}
PRECISION |= {"csv": 0, "parquet": 0}
KEY_FRAMES = {"cvat", "label-studio"}


def annotated(out, to):
    """What a tool makes of an export when a person submits it unchanged."""
    if to == "label-studio":  # predictions become an annotation
        tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
        for task in tasks:
            task["annotations"] = [{"id": 1, "was_cancelled": False, "result": task.pop("predictions")[0]["result"]}]
        (out / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    return out


def test_every_format_is_tested():
    assert PRECISION.keys() == readable().keys()


@pytest.mark.parametrize("to", PRECISION)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_was_exported_comes_back(to, data):
    rows = data.draw(scenes(tracked=to in KEY_FRAMES))
    tolerance = data.draw(st.sampled_from([0, 1, 5]))
    with exported(rows, to, options=Options(tolerance=tolerance)) as (out, video):
        table = out.parent / "clip one.csv"
        found = import_labels(annotated(out, to), to, tables=[table], tolerance=tolerance)
        again = write_corrections(out.parent / "corrections.csv", found.corrections)
        assert read_corrections(again) == found.corrections
    assert not found.left_out
    assert {one.kind for one in found.corrections} == {"accepted"}
    assert not any(one.key for one in found.corrections)  # nobody is known to have looked
    allowed = PRECISION[to] + (tolerance if to in KEY_FRAMES else 0)
    boxes = {}
    for one in found.corrections:
        assert (one.video, one.path, one.origin) == ("clip one", str(video.source.path), to)
        assert one.pts == pytest.approx(one.frame / 25)
        boxes.setdefault(one.frame, []).extend((one.tag, *box) for box in one.boxes)
    assert sorted(boxes) == video.listed.tolist()
    for frame, own in video.objects_of.items():
        expected = sorted((video.rows.tag[row], *video.rows.box[row].tolist()) for row in own)
        assert [one[0] for one in sorted(boxes[frame])] == [one[0] for one in expected]
        left = [np.array(one[1:]) for one in boxes[frame]]
        for _, *corners in expected:
            distance = [np.abs(one - corners).max() for one in left]
            assert min(distance) <= allowed + 1e-12
            left.pop(int(np.argmin(distance)))


@pytest.mark.parametrize("to", PRECISION)
@pytest.mark.parametrize("named", ["folder", "tables in another order"])
def test_videos_of_one_name_in_several_folders_come_back(tmp_path, to, named):
    """As in folders of tagged videos; the export tells them apart by their folders."""
    boxes = {"bus": (5, 6, 40, 31), "cat": (10, 20, 50, 60), "dog": (30, 5, 60, 40)}
    tables = [
        write_table(
            tmp_path / "out" / tag / "01.csv",
            [row(frame, box if frame < 7 else None, tag) for frame in range(9)],
            frames=9,
            video="01.mp4",
        )
        for tag, box in boxes.items()
    ]
    labels = export([tmp_path / "out"], to, tmp_path / "labels")
    queue = review_tables([tmp_path / "out"], tmp_path / "queue.csv", share=1, purpose="learning")
    known, checked = ([tmp_path / "out"], queue) if named == "folder" else (tables[::-1], "all")
    found = import_labels(annotated(labels, to), to, tables=known, checked=checked)
    assert not found.left_out
    assert {one.kind for one in found.corrections} == {"accepted"}
    assert all(one.key for one in found.corrections)
    assert sorted((one.video, one.frame) for one in found.corrections) == [
        (f"{tag}_01", frame) for tag in boxes for frame in range(9)
    ]
    assert {(one.tag, Path(one.path).parent.name) for one in found.corrections if one.boxes} == {(t, t) for t in boxes}


@pytest.mark.parametrize(
    ("video", "checked"),
    [("cat_01", ["cat"]), ("cat/01", ["cat"]), ("out/dog/01.mp4", ["dog"]), ("01", ["cat", "dog"]), ("bus/02", [])],
)
def test_frames_that_were_looked_at_are_those_of_the_video_that_the_queue_means(tmp_path, video, checked):
    """The queue of a run names clips with their folders, that of tables as an export does."""
    tables = [
        write_table(tmp_path / "out" / tag / "01.csv", [row(0, (1, 2, 30, 40), tag)], frames=9, video="01.mp4")
        for tag in ("cat", "dog")
    ]
    queue = tmp_path / "queue.csv"
    queue.write_text(f"video,frame\n{video},0\n", encoding="utf-8")
    found = import_labels(export(tables, "csv", tmp_path / "labels"), "csv", tables=tables, checked=queue)
    assert [one.tag for one in found.corrections if one.key] == checked


@pytest.mark.parametrize("video", ["dog_01", "dog/01", "dog/01.mp4"])
def test_times_are_those_of_the_video_that_a_table_names_with_its_folders(tmp_path, video):
    for tag, fps in (("cat", 25), ("dog", 10)):
        rows = [row(frame, (1, 2, 30, 40), tag) | {"pts": frame / fps} for frame in range(9)]
        write_table(tmp_path / "out" / tag / "01.csv", rows, fps=str(fps), frames=9, video="01.mp4")
    labels = tmp_path / "labels.csv"
    labels.write_text(f"video,pts,class,x1,y1,x2,y2\n{video},0.3,dog,5,6,30,40\n", encoding="utf-8")
    (found,) = import_labels(labels, "csv", tables=[tmp_path / "out"]).corrections
    assert (found.video, found.frame, found.kind) == ("dog_01", 3, "box")


@pytest.mark.parametrize("to", PRECISION)
def test_a_track_whose_class_changes_is_no_correction(tmp_path, to):
    """Where a track has one class, the export names the most frequent one."""
    rows = [row(frame, (10, 20, 50, 60), "fish" if frame < 3 else "cat", 0) for frame in range(9)]
    table = write_table(tmp_path / "a.csv", rows, frames=9)
    found = import_labels(annotated(export([table], to, tmp_path / "labels"), to), to, tables=[table])
    assert not found.left_out
    assert {one.frame: one.kind for one in found.corrections} == dict.fromkeys(range(9), "accepted")


@pytest.mark.parametrize("to", PRECISION)
@pytest.mark.parametrize("with_tables", [True, False])
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_boxes_classes_and_tracks_of_namesakes_in_folders_come_back(tmp_path_factory, to, with_tables, data):
    """Objects of one class too; YOLO and VOC have no tracks. What a file does not say needs the tables."""
    if not with_tables and to in {"yolo", "label-studio"}:
        return  # shares of a frame whose size is not known: refused, see below
    folder = tmp_path_factory.mktemp("videos")
    for name in ("kite", "snail"):
        rows = data.draw(scenes(tracked=True))
        write_table(folder / "out" / name / "01.csv", rows, video="01.mp4")
    tables = tables_of([folder / "out"])
    labels = annotated(export(tables, to, folder / "labels", options=Options(tolerance=0)), to)
    imported = import_labels(labels, to, tables=tables if with_tables else [], tolerance=0)
    assert not imported.left_out
    numbered = to not in {"yolo", "voc"}
    videos = read_videos(tables, [])
    listed = {(video.name, frame) for video in videos for frame in video.listed.tolist()}
    returned = Counter()
    for correction in imported.corrections:
        assert not numbered or len(correction.boxes) <= 1
        place = correction.video, correction.frame, correction.tag, correction.track
        if place[:2] in listed:  # CVAT shows an object in the frames between, too
            returned[place] += len(correction.boxes)
        assert with_tables or correction.kind in {"box", "none"}
    expected = Counter()
    for video in videos:
        for frame, rows in video.objects_of.items():
            for row_ in rows:
                stated = video.rows.track[row_] + 1 if to in {"csv", "parquet"} else video.track_of(row_).id
                expected[video.name, frame, video.rows.tag[row_], (stated or None) if numbered else None] += 1
    assert +returned == expected
    rows = sum(max(len(correction.boxes), 1) for correction in imported.corrections)
    assert imported.summary().startswith(f"{rows} rows (")


@pytest.mark.parametrize("to", ["yolo", "label-studio"])
def test_shares_of_a_frame_need_the_tables(tmp_path, to):
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 30, 40))])
    labels = annotated(export([table], to, tmp_path / "labels"), to)
    with pytest.raises(ColocamError, match="boxes are fractions of the frame size, which is not known: name `tables`"):
        import_labels(labels, to)


def test_namesakes_that_nothing_tells_apart_are_refused(tmp_path):
    """Not merged into one video."""
    for folder in ("a", "b"):
        table = write_table(tmp_path / folder / "01.csv", [row(0, (1, 2, 30, 40))], video="01.mp4")
        export([table], "cvat", tmp_path / "labels" / folder)
    with pytest.raises(ColocamError, match=r"labels: 2 videos are called '01\.mp4': name their `tables`"):
        import_labels(tmp_path / "labels", "cvat")


@pytest.mark.parametrize("to", PRECISION)
def test_a_video_without_an_object_comes_back_beside_one_with_objects(tmp_path, to):
    """Its labels say nothing, as its table does."""
    tables = [
        write_table(tmp_path / "a.csv", [row(0, (1, 2, 30, 40)), row(1)], frames=2, video="a.mp4"),
        write_table(tmp_path / "b.csv", [row(0), row(1)], frames=2, video="b.mp4"),
    ]
    imported = import_labels(annotated(export(tables, to, tmp_path / "labels"), to), to, tables=tables)
    assert not imported.left_out
    assert [(one.video, one.frame, one.kind, one.key) for one in imported.corrections] == [
        (video, frame, "accepted", False) for video in "ab" for frame in (0, 1)
    ]


@pytest.mark.parametrize("to", ["cvat", "coco", "voc", "mot", "csv"])
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_without_tables_all_boxes_are_corrections(to, data):
    with exported(data.draw(scenes(tracked=True)), to, options=Options(tolerance=0)) as (out, video):
        found = import_labels(out, to)
    boxes = {
        one.frame: sum(len(other.boxes) for other in found.corrections if other.frame == one.frame)
        for one in found.corrections
    }
    assert {one.kind for one in found.corrections} <= {"box", "none"}
    assert all(boxes.get(frame, 0) == len(rows) for frame, rows in video.objects_of.items())
    assert max(boxes) < FRAMES
