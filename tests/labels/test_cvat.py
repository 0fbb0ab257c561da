"""CVAT for video 1.1, read by the rules of CVAT's importer and player.

Its importer keeps boxes with ``keyframe="1"`` and no others; between two of them the player draws straight lines;
after the last, or after one with ``outside="1"``, what it shows does not change. (CVAT's SDK reads no XML.)
"""

from xml.etree import ElementTree as ET

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colocam.labels import Options, export
from tests.helpers.label_scenes import exported, row, scenes, write_table

CORNERS = ("xtl", "ytl", "xbr", "ybr")


def shown(path):
    """What CVAT shows: (label, {frame: box}) of each track."""
    root = ET.parse(path).getroot()
    frames = int(root.findtext("meta/task/size"))
    tracks = []
    for track in root.iterfind("track"):
        keys = [box for box in track.iterfind("box") if box.attrib["keyframe"] == "1"]
        numbers = [int(box.attrib["frame"]) for box in keys]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] < frames
        boxes = {}
        for i, key in enumerate(keys):
            if key.attrib["outside"] == "1":
                continue
            here = np.array([float(key.attrib[name]) for name in CORNERS])
            following = keys[i + 1] if i + 1 < len(keys) else None
            until = frames if following is None else numbers[i + 1]
            for frame in range(numbers[i], until):
                boxes[frame] = here
                if following is not None and following.attrib["outside"] == "0":
                    there = np.array([float(following.attrib[name]) for name in CORNERS])
                    boxes[frame] = here + (there - here) * (frame - numbers[i]) / (until - numbers[i])
        tracks.append((track.attrib["label"], boxes))
    return tracks


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), tolerance=st.sampled_from([0, 0.5, 1, 10]), tracked=st.booleans())
def test_cvat_shows_what_the_table_says(data, tolerance, tracked):
    rows = data.draw(scenes(tracked=tracked))
    with exported(rows, "cvat", options=Options(tolerance=tolerance)) as (out, video):
        tracks = shown(out / "clip one.xml")
    assert len(tracks) == len(video.tracks)
    for (label, boxes), track in zip(tracks, video.tracks, strict=True):
        assert label == track.tag
        stated = dict(zip(video.rows.frame[track.rows].tolist(), video.rows.box[track.rows], strict=True))
        assert set(boxes) & set(video.listed.tolist()) == set(stated)
        for frame, box in stated.items():
            np.testing.assert_allclose(boxes[frame], box, atol=tolerance + 0.006)


def test_a_file_per_video_with_its_size_and_labels(tmp_path):
    tables = [
        write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4), 'it\'s <"&">')], video="a & b.mp4"),
        write_table(tmp_path / "b.csv", [row(0, (1, 2, 3, 4), "猫")], size=(1920, 1080)),
    ]
    out = export(tables, "cvat", tmp_path / "out")
    trees = [ET.parse(out / f"{name}.xml").getroot() for name in "ab"]
    for tree in trees:
        assert tree.tag == "annotations"
        assert tree.findtext("version") == "1.1"
        assert tree.findtext("meta/task/mode") == "interpolation"
        assert [one.text for one in tree.iterfind("meta/task/labels/label/name")] == ['it\'s <"&">', "猫"]
    assert [tree.findtext("meta/task/original_size/width") for tree in trees] == ["97", "1920"]
    assert [tree.find("track").attrib["label"] for tree in trees] == ['it\'s <"&">', "猫"]
    assert trees[0].findtext("meta/task/source") == "a & b.mp4"
