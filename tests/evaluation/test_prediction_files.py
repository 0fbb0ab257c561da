"""Files of predictions and the labeled frames they are about."""

import zlib

import cv2
import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.evaluation.prediction_files import map_files, read_boxes, read_labeled, read_map, read_mask
from tests.helpers.csv_tables import csv_table


def test_the_best_score_comes_first(tmp_path):
    path = csv_table(
        tmp_path / "b.csv",
        "clip,frame,x1,y1,x2,y2,class,score",
        *("a,0,1,1,2,2,cat,0.2", "a,0,3,3,4,4,dog,0.9", "a,0,5,5,6,6,cat,0.9", "a,1,,,,,,", "b,0,1,1,2,2,,"),
    )
    found = read_boxes(path)
    assert [(one.box, one.tag) for one in found["a", 0]] == [
        ((3, 3, 4, 4), "dog"),
        ((5, 5, 6, 6), "cat"),
        ((1, 1, 2, 2), "cat"),
    ]
    assert [(one.box, one.tag) for one in found["a", 1]] == [(None, "")]
    assert [one.box for one in found["b", 0]] == [(1, 1, 2, 2)]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a,,1,1,2,2,", "row 2: clip must be named and frame must be an index"),
        ("a,0.5,1,1,2,2,", "row 2: clip must be named and frame must be an index"),
        (",0,1,1,2,2,", "row 2: clip must be named and frame must be an index"),
        ("a,0,1,1,2,,", "row 2: a box needs x1 < x2"),
        ("a,0,2,1,1,2,", "row 2: a box needs x1 < x2"),
        ("a,0,one,1,1,2,", "row 2: x1 is 'one', which is not a number"),
        ("a,0,1,1,2,2,high", "row 2: score is 'high'"),
        ("a,0,1,1,2,2,\na,0,1,1,2,2,", "row 3: the frame has several boxes, so each needs a score"),
    ],
)
def test_malformed_tables(tmp_path, row, told):
    with pytest.raises(ColocamError, match=told):
        read_boxes(csv_table(tmp_path / "b.csv", "clip,frame,x1,y1,x2,y2,score", row))


def test_a_table_without_clips(tmp_path):
    with pytest.raises(ColocamError, match="no column 'clip'"):
        read_boxes(csv_table(tmp_path / "b.csv", "frame,x1,y1,x2,y2", "0,1,1,2,2"))


def test_files_of_maps(tmp_path):
    for name in ("cat/one/0012.npy", "cat/one/13.PNG", "dog/7.png", "readme.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert map_files(tmp_path) == {
        ("cat/one", 12): tmp_path / "cat/one/0012.npy",
        ("cat/one", 13): tmp_path / "cat/one/13.PNG",
        ("dog", 7): tmp_path / "dog/7.png",
    }
    (tmp_path / "dog" / "007.npy").touch()
    with pytest.raises(ColocamError, match="is for the same frame: delete one"):
        map_files(tmp_path)
    (tmp_path / "dog" / "007.npy").rename(tmp_path / "dog" / "seven.npy")
    with pytest.raises(ColocamError, match=r"the file name must be the index of the frame, such as 12\.npy"):
        map_files(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ColocamError, match="has no file <clip>/<frame>"):
        map_files(tmp_path / "empty")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.ones((2, 3, 4), np.uint8), r"got uint8 of shape \(2, 3, 4\)"),
        (np.ones((2, 3), np.int64), "got int64"),
        (np.ones((0, 3), np.uint8), r"shape \(0, 3\)"),
        (np.full((2, 3), 1.5), "must be in 0–1"),
        (np.full((2, 3), -0.1), "must be in 0–1"),
        (np.full((2, 3), np.nan), "must be in 0–1"),
        (np.array([{}], dtype=object), "not a complete .npy array"),
    ],
)
def test_what_is_no_map(tmp_path, values, told):
    np.save(tmp_path / "1.npy", values)
    with pytest.raises(ColocamError, match=rf"1\.npy: .*{told}"):
        read_map(tmp_path / "1.npy")


@pytest.mark.parametrize("name", ["1.npy", "1.png"])
@pytest.mark.parametrize("content", [b"", b"something else"])
def test_broken_maps(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ColocamError, match=rf"{name}: not a complete") as raised:
        read_map(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_masks(tmp_path):
    np.save(tmp_path / "1.npy", np.array([[0, 1, 255, 128]], np.uint8))
    assert read_mask(tmp_path / "1.npy").tolist() == [[0, 1, 1, 2]]


# labeled frames


@pytest.mark.parametrize(
    ("header", "rows", "told"),
    [
        ("", ["a,0,1,1,1,2,2"], "has no column tag: add it"),
        (",tag", ["a,0,1,1,1,2,2,"], "row 2: tag must not be empty"),
        (",tag,split", ["a,0,1,1,1,2,2,cat,later"], "row 2: .* and split must be train, val or test"),
        (",tag", ["a,0,1,1,1,2,2,cat", "a,1,1,1,1,2,2,dog"], "row 3: the clip 'a' has a different tag"),
        (",tag,width,height", ["a,0,1,1,1,2,2,cat,wide,3"], "row 2: width is 'wide'"),
    ],
)
def test_tables_that_do_not_say_enough(tmp_path, header, rows, told):
    with pytest.raises(ColocamError, match=told):
        read_labeled(csv_table(tmp_path / "t.csv", f"clip,frame,present,x1,y1,x2,y2{header}", *rows), None, "test")


def test_an_unknown_size(tmp_path):
    labeled = read_labeled(
        csv_table(tmp_path / "t.csv", "clip,frame,present,x1,y1,x2,y2,tag", "a,0,1,1,1,2,2,cat"), None, "test"
    )
    with pytest.raises(ColocamError, match="the size of frame 0 of 'a' is not known: add the columns width and height"):
        _ = labeled.frames("test")[0].size


def test_a_header_that_asks_for_all_memory(tmp_path):
    with (tmp_path / "1.npy").open("wb") as file:
        described = {"descr": "<f4", "fortran_order": False, "shape": (10_000_000, 10_000_000)}
        np.lib.format.write_array_header_1_0(file, described)
    with pytest.raises(ColocamError, match=r"1\.npy: (not a complete|a map of)"):
        read_map(tmp_path / "1.npy")
    data = cv2.imencode(".png", np.zeros((4, 4), np.uint8))[1].tobytes()
    header = data[12:16] + (60_000).to_bytes(4) * 2 + data[24:29]
    large = data[:12] + header + zlib.crc32(header).to_bytes(4) + data[33:]
    (tmp_path / "1.png").write_bytes(large)
    with pytest.raises(ColocamError, match=r"1\.png: a map of 60000×60000 is too large"):
        read_map(tmp_path / "1.png")


@pytest.mark.parametrize("side", ["0.5", "-8"])
def test_frames_have_at_least_a_pixel(tmp_path, side):
    columns = "clip,frame,present,x1,y1,x2,y2,tag,width,height"
    boxes = csv_table(tmp_path / "t.csv", columns, f"a,0,1,1,1,2,2,cat,{side},8")
    with pytest.raises(ColocamError, match="row 2: width and height must be 1 pixel or more"):
        read_labeled(boxes, None, "test")
