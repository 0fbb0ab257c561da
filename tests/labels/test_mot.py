"""MOTChallenge, read by motmetrics (which turns its pixels from 1 into pixels from 0) and compared with itself."""

import configparser
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colocam.labels import export
from tests.helpers.label_scenes import exported, row, scenes, write_table

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import motmetrics as mm


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_motmetrics_reads_every_box(data):
    with exported(data.draw(scenes()), "mot") as (out, video):
        truth = mm.io.loadtxt(out / "clip one" / "gt" / "gt.txt", fmt="mot16", min_confidence=1).reset_index()
        found = mm.io.loadtxt(out / "clip one" / "det" / "det.txt", fmt="mot15-2D").reset_index()
        labels = (out / "clip one" / "gt" / "labels.txt").read_text(encoding="utf-8").splitlines()
    rows = video.objects
    for read in (truth, found):
        assert (read["FrameId"] - 1).tolist() == video.rows.frame[rows].tolist()
        corner = read[["X", "Y"]].to_numpy()
        size = read[["Width", "Height"]].to_numpy()
        np.testing.assert_allclose(np.hstack([corner, corner + size]), video.rows.box[rows], atol=2e-3)
    assert truth["Id"].tolist() == [video.track_of(row).id for row in rows.tolist()]
    assert [labels[number - 1] for number in truth["ClassId"]] == [video.track_of(row).tag for row in rows.tolist()]
    assert (truth["Visibility"] == 1).all()
    assert (found["Id"] == -1).all()


def test_scores_are_those_of_the_table_or_one():
    with exported([row(0, (1, 2, 3, 4), score=0.125), row(1, (1, 2, 3, 4))], "mot") as (out, _):
        lines = (out / "clip one" / "det" / "det.txt").read_text().splitlines()
    assert lines == ["1,-1,2.000,3.000,2.000,2.000,0.125,-1,-1,-1", "2,-1,2.000,3.000,2.000,2.000,1,-1,-1,-1"]


def test_a_folder_per_video_says_what_it_is(tmp_path):
    tables = [
        write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4))], fps="30000/1001"),
        write_table(tmp_path / "б &.csv", [row(39, (1, 2, 3, 4))], size=(640, 480)),
    ]
    out = export(tables, "mot", tmp_path / "out")
    said = {}
    for name in ("a", "б &"):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(out / name / "seqinfo.ini", encoding="utf-8")
        said[name] = parser["Sequence"]
        assert said[name]["name"] == name
        assert said[name].getint("seqLength") == 40
    assert said["a"].getfloat("frameRate") == pytest.approx(29.97, abs=1e-3)
    assert (said["б &"].getint("imWidth"), said["б &"].getint("imHeight")) == (640, 480)
    assert (out / "б &" / "gt" / "gt.txt").read_text().startswith("40,1,2.000,3.000,")
