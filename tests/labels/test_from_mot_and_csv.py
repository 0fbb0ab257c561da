"""MOTChallenge as the benchmark and as CVAT write it, and tables that were edited."""

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.labels import import_labels
from colocam.utils.tables import read_cells
from tests.helpers.label_scenes import row, write_table


def test_mot_of_the_benchmark_counts_pixels_from_one_and_cvat_from_zero(tmp_path, table, brief):
    sequence = tmp_path / "video"
    (sequence / "gt").mkdir(parents=True)
    (sequence / "gt" / "labels.txt").write_text("bird\ncat\n")
    lines = ["4,1,4.0,5.0,30.0,40.0,1,2,1.0", "5,1,4,5,30,40,0,2,1", "6,1,4,5,30,40,1,3,1"]
    (sequence / "gt" / "gt.txt").write_text("\n".join(lines))
    found = import_labels(tmp_path / "video", "mot", tables=[table])
    assert brief(found.corrections)[3] == ("box", (4, 5, 34, 45), True)
    assert brief(found.corrections)[6] == ("none", True)
    assert not {4, 5} & set(brief(found.corrections))
    assert sorted(found.left_out) == [
        "box of MOT that does not count: its seventh number is 0",
        "box of class 3 of MOT: labels.txt does not name it",
    ]
    (sequence / "seqinfo.ini").write_text("[Sequence]\nname=video\nseqLength=40\nimWidth=97\nimHeight=71\n")
    assert brief(import_labels(sequence, "mot", tables=[table]).corrections)[3] == ("box", (3, 4, 33, 44), True)
    (sequence / "seqinfo.ini").write_text("[Sequence]\nname=video\nseqLength=50\n")
    assert import_labels(sequence, "mot", tables=[table]).corrections == []


def test_detections_without_a_class_are_of_the_class_that_the_video_has_most_often(tmp_path, brief):
    rows = [row(frame, (10, 20, 50, 60), tag="cat" if frame < 12 else "dog") for frame in range(20)]
    table = write_table(tmp_path / "video.csv", rows, frames=20)
    detections = tmp_path / "video" / "det" / "det.txt"
    detections.parent.mkdir(parents=True)
    detections.write_text("4,-1,4,5,30,40,0.75,-1,-1,-1\n16,-1,10,20,40,40,0.5,-1,-1,-1\n")
    for path in (detections, detections.parent, detections.parents[1]):
        found = import_labels(path, "mot", tables=[table], meant="video")
        assert found.left_out == {}
        assert brief(found.corrections)[3] == ("box", (4, 5, 34, 45), True)
        assert {one.tag for one in found.corrections if one.frame in {3, 15}} == {"cat"}
    detections.write_text("4,-1,4,5,30,40,0.75,2,-1,-1\n")
    with pytest.raises(ColocamError, match=r"no labels\.txt beside it"):
        import_labels(detections, "mot", tables=[table])


def test_labels_of_a_video_by_another_name_are_those_of_the_one_that_is_meant(tmp_path, table, brief):
    for name, x in (("MOT17-02", 4), ("MOT17-04", 9)):
        file = tmp_path / "sequences" / name / "gt" / "gt.txt"
        file.parent.mkdir(parents=True)
        file.write_text(f"4,1,{x},5,30,40,1,1,1\n")
    first = import_labels(tmp_path / "sequences", "mot", tables=[table], meant="video")
    assert (first.corrections, first.strangers) == ([], ("MOT17-02", "MOT17-04"))
    second = import_labels(tmp_path / "sequences", "mot", tables=[table], meant="video", labels_of="MOT17-04")
    assert brief(second.corrections)[3] == ("box", (9, 5, 39, 45), True)
    # Another length is another video, whoever says that it is the same.
    (tmp_path / "sequences" / "MOT17-04" / "seqinfo.ini").write_text("[Sequence]\nname=MOT17-04\nseqLength=50\n")
    longer = import_labels(tmp_path / "sequences", "mot", tables=[table], meant="video", labels_of="MOT17-04")
    assert longer.corrections == []
    # Beside a video that the table is of, nothing is guessed.
    (tmp_path / "sequences" / "MOT17-02").rename(tmp_path / "sequences" / "video")
    assert import_labels(tmp_path / "sequences", "mot", tables=[table], meant="video").strangers == ()


def test_a_table_that_was_edited_in_a_spreadsheet(tmp_path, table, brief):
    lines = table.read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines[:7]]
    cells[3][4:8] = ["1,5", "2", "30", "40"]
    cells[4][4:8] = [""] * 4
    cells[5][2] = "dog"
    edited = tmp_path / "video.csv"
    edited.write_text("\n".join(";".join(line) for line in cells))
    found = import_labels(edited, "csv", tables=[table], classes=["cat", "dog"]).corrections
    assert brief(found) == {
        0: ("accepted", (10, 20, 50, 60), False),
        1: ("accepted", (10, 20, 50, 60), False),
        2: ("box", (1.5, 2, 30, 40), True),
        3: ("none", True),
        4: ("class", (10, 20, 50, 60), True),
        5: ("accepted", (10, 20, 50, 60), False),
    }
    assert found[4].tag == "dog"


def test_rows_by_pts_belong_to_the_nearest_frame(tmp_path, brief):
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.03, 0.05, 20)) + 7
    table = write_table(
        tmp_path / "video.csv", [row(i, (10, 20, 50, 60), pts=t) for i, t in enumerate(times)], frames=20
    )
    path = tmp_path / "by-time.csv"
    lines = [f"video,{times[frame] + away},cat,1,2,30,40" for frame, away in ((3, 0.01), (9, -0.01), (19, 5.0))]
    path.write_text("video,pts,class,x1,y1,x2,y2\n" + "\n".join(lines))
    found = import_labels(path, "csv", tables=[table])
    assert sorted(brief(found.corrections)) == [3, 9]
    assert dict(found.left_out) == {"row of 'video' by pts: no frame of the table has this pts": 1}


def test_the_command_writes_corrections_and_names_what_it_left_out(tmp_path, table, colocam):
    labels = tmp_path / "video.csv"
    labels.write_text("frame,class,x1,y1,x2,y2\n0,cat,1,2,30,40\n1,cow,1,2,30,40\n2,cat,,,,\n")
    out = tmp_path / "corrections.csv"
    done = colocam("import", labels, "--from", "csv", "--tables", table.parent, "-o", out)
    assert done.code == 0, done.err
    assert "left out, 1×: box of 'video': class 'cow' is unknown" in done.err
    assert f"wrote {out}: 2 rows (1 box, 1 none) of 2 frames" in done.err
    assert read_cells(out).text("kind") == ["box", "none"]
    again = colocam("import", labels, "--from", "csv", "--tables", table.parent, "-o", out)
    assert again.code == 0
    labels.write_text("frame,class,x1,y1,x2,y2\n0,cat,1,2,30,41\n")
    refused = colocam("import", labels, "--from", "csv", "--tables", table.parent, "-o", out)
    assert (refused.code, "corrections are never replaced" in refused.error) == (1, True)
    wrong = colocam("import", labels, "--from", "cvta", "-o", out)
    assert "error: --from must be a label format, got 'cvta': did you mean 'cvat'?" in wrong.error


@pytest.mark.parametrize("name", ["missing.csv", "empty"])
def test_nothing_to_read(tmp_path, colocam, name):
    (tmp_path / "empty").mkdir()
    done = colocam("import", tmp_path / name, "--from", "csv", "-o", tmp_path / "out.csv")
    assert done.code == 1
    assert name in done.error
