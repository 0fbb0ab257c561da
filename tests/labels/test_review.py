"""From tables, and from a run, to a list of frames to look at."""

import csv
import json
import os
import shutil

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.inference.localize import localize_file
from colocam.labels import rank, review_tables
from colocam.labels.table import TableRows, read_table
from colocam.report.run_review import frames_of, review_run
from colocam.run import open_run
from colocam.video.fence import decode

HEADER = "frame,pts,class,probability,x1,y1,x2,y2,score,track,presence,margin"


def row(frame, box="10,10,30,30", score=0.6, presence=0.95, margin=0.8):
    return f"{frame},{frame / 25},cat,0.9,{box},{score},0,{presence},{margin}"


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def two(tmp_path):
    """Two tables of 40 frames: faint boxes in the first, one that leaps and a missing one in the second."""
    faint = [row(t, score=0.1 if 10 <= t < 14 else 0.6) for t in range(40)]
    odd = {5: row(5, "70,70,90,90"), 20: row(20, ",,,", 0, 0.95, "")}
    return [write(tmp_path / "a video.csv", faint), write(tmp_path / "b.csv", [odd.get(t, row(t)) for t in range(40)])]


def test_the_worst_frames_of_several_videos_with_their_reasons(two, tmp_path):
    out = review_tables(two, tmp_path / "new" / "queue.csv", share=0.1)
    found = read(out)
    assert list(found[0]) == ["video", "frame", "pts", "doubt", "reason"]
    assert len(found) == 8  # of 80
    assert (found[0]["video"], found[0]["reason"]) == ("a video", "little heat inside the box")
    assert 10 <= int(found[0]["frame"]) < 14
    told = {(one["video"], int(one["frame"])): one["reason"] for one in found}
    assert told["b", 5] == "the box jumps"
    assert told["b", 20].startswith("no box")
    assert [float(one["pts"]) for one in found] == [int(one["frame"]) / 25 for one in found]


def test_only_an_earlier_queue_is_replaced(two, tmp_path):
    table = two[0].read_bytes()
    (tmp_path / "link.csv").symlink_to(two[0])
    for out in (two[0], tmp_path / "link.csv"):
        with pytest.raises(ColocamError, match="out must not be the table itself, got "):
            review_tables(two, out)
    with pytest.raises(
        ColocamError, match=r"a video\.csv exists and is not a list of frames to review: choose another"
    ):
        review_tables(two[1:], two[0])
    assert two[0].read_bytes() == table
    queue = review_tables(two, tmp_path / "queue.csv", share=0.1)
    assert len(read(review_tables(two, queue, share=0.2))) == 16


def test_by_doubt_alone_the_whole_stretch_comes_first(two, tmp_path):
    found = read(review_tables(two, tmp_path / "queue.csv", share=0.05, apart=0))
    assert [(one["video"], int(one["frame"])) for one in found] == [("a video", t) for t in range(10, 14)]
    assert [float(one["doubt"]) for one in found] == sorted((float(one["doubt"]) for one in found), reverse=True)


def test_the_most_doubtful_object_speaks_for_its_frame(tmp_path):
    rows = [line for t in range(20) for line in (row(t), row(t, "50,50,80,80", 0.2 if t == 7 else 0.6))]
    (first,) = rank([read_table(write(tmp_path / "t.csv", rows))], share=0.05)
    assert (first.frame, first.reason) == (7, "little heat inside the box")


def test_the_bare_columns_are_enough(tmp_path):
    lines = [f"{t},cat,10,10,30,30,{0.1 if t == 3 else 0.6}" for t in range(10)]
    table = write(tmp_path / "t.csv", lines, "frame,class,x1,y1,x2,y2,score")
    (first,) = rank([read_table(table)], share=0.1)
    assert (first.frame, first.pts) == (3, 3)


def test_a_table_without_scores(tmp_path):
    table = write(tmp_path / "t.csv", ["0,1,1,2,2"], "frame,x1,y1,x2,y2")
    with pytest.raises(ColocamError, match="no column 'score'"):
        review_tables([table], tmp_path / "queue.csv")
    assert not (tmp_path / "queue.csv").exists()


def test_the_command_on_tables(colocam, trained, two, tmp_path, monkeypatch, make_video, square_video):
    video = make_video(tmp_path / "v.mp4", square_video("cat", 5, 12)[0])
    _, table = localize_file(trained, video, tmp_path / "out")
    assert colocam("review", table, *two, "-o", tmp_path / "q.csv", "--share", "1").code == 0
    assert sorted((one["video"], int(one["frame"])) for one in read(tmp_path / "q.csv") if one["video"] == "v") == [
        ("v", t) for t in range(12)
    ]
    monkeypatch.chdir(tmp_path)
    assert colocam("review", *two).code == 0
    assert len(read(tmp_path / "review.csv")) == 4
    assert "there is no such file" in colocam("review", tmp_path / "none.csv").error
    assert "--share must be above 0 and at most 1, got 0.0" in colocam("review", *two, "--share", "0").error
    assert "--apart must be 0 seconds or more, got -1.0" in colocam("review", *two, "--apart", "-1").error
    assert "give either tables or one run folder" in colocam("review", trained, two[0]).error
    assert "--split must be one of" in colocam("review", trained, "--split", "tset").error


@pytest.fixture
def run(trained, tmp_path):
    """The trained run in a folder of its own, by links."""
    return shutil.copytree(trained, tmp_path / "run", copy_function=os.symlink)


def test_a_run_gives_a_queue_and_pictures_for_its_report(colocam, run):
    outcome = colocam("review", run, "--share", "0.5")
    assert outcome.code == 0, outcome.err
    queue = read(run / "review.csv")
    assert len(queue) == 8  # of 15 test frames
    assert {one["video"] for one in queue} <= {"bus/test-0", "cat/test-0", "owl/test-0"}
    with np.load(run / "review.npz", allow_pickle=False) as saved:
        meta = json.loads(str(saved["meta"]))
        assert len(saved["images"]) == len(saved["heatmaps"]) == len(saved["boxes"]) == len(meta) == 8
        assert [(one["clip"], str(one["frame"]), one["reason"]) for one in meta] == [
            (one["video"], one["frame"], one["reason"]) for one in queue
        ]
        clip = next(c for c in open_run(run).clips("test") if c.clip.name == meta[0]["clip"])
        np.testing.assert_array_equal(saved["images"][0], clip.frames[meta[0]["frame"]])
    assert colocam("report", run).code == 0
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert 'id="review"' in page
    assert page.count("doubt 0.") >= 8
    assert queue[0]["reason"] in page


def test_another_split_and_none(run, tmp_path):
    assert review_run(run, tmp_path / "q.csv", split="val") == tmp_path / "q.csv"
    assert {one["video"] for one in read(tmp_path / "q.csv")} <= {"bus/val-0", "cat/val-0", "owl/val-0"}
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    data["clips"] = [clip for clip in data["clips"] if clip["split"] == "train"]
    (run / "data.json").unlink()
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ColocamError, match="no 'test' video: choose the split train"):
        review_run(run)


def test_rows_of_a_run_and_of_a_table_are_the_same(trained, tmp_path, make_video, square_video):
    from colocam import Localizer  # noqa: PLC0415 - torch only for those who need it

    video = make_video(tmp_path / "v.mp4", square_video("owl", 6, 10)[0])
    _, table = localize_file(trained, video, tmp_path / "out")
    expected, read_back = TableRows.of(list(Localizer.load(trained)(video))), read_table(table)
    expected = expected._replace(shot_probability=np.full(10, np.nan))  # the page alone writes this column
    for one, other in zip(read_back, expected, strict=True):
        if isinstance(one, list):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12)
    clip = open_run(trained).clips("test")[0]
    assert [frame.index for frame in frames_of(clip)] == [frame.index for frame in decode(clip.clip.path)]
