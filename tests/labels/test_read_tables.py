"""Tables as localize writes them and as people leave them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from colocam.errors import ColocamError
from colocam.labels.labeled_videos import read_videos
from tests.helpers.label_scenes import row, write_table


def read(table):
    return read_videos([table], [])[0]


def test_a_table_from_a_spreadsheet(tmp_path):
    """Byte-order mark, capitals, blanks, any order of rows and columns, whole numbers with a point, empty lines."""
    table = write_table(tmp_path / "a.csv", [])
    text = (
        "\ufeffClass, Frame ,y2,x1,y1,x2,note\r\ncat,2.0, 40,1,2,30,x\r\n\r\ndog,0,40.5,1,2,30,\r\ncat,1,,,,,empty\r\n"
    )
    table.write_bytes(text.encode())
    video = read(table)
    assert video.rows.frame.tolist() == [0, 1, 2]
    assert video.rows.tag == ["dog", "cat", "cat"]
    assert video.objects.tolist() == [0, 2]
    assert video.rows.box[2].tolist() == [1, 2, 30, 40]
    assert video.rows.pts.tolist() == [0, 1 / 25, 2 / 25]


def test_boxes_are_cut_at_the_edges_and_those_without_area_left_out(tmp_path, capfd):
    boxes = [(-0.5, -0.9, 97.5, 72), (97, 0, 97.5, 5), (5, 5, 5, 9), (0, 0, 97, 71)]
    video = read(write_table(tmp_path / "a.csv", [row(i, box) for i, box in enumerate(boxes)]))
    assert video.objects.tolist() == [0, 3]
    assert video.rows.box[[0, 3]].tolist() == [[0, 0, 97, 71]] * 2
    assert video.listed.tolist() == [0, 1, 2, 3]
    assert f"{tmp_path / 'a.csv'}: 2 boxes have no area and were skipped" in capfd.readouterr().err


def test_a_parquet_column_that_is_no_number(tmp_path):
    write_table(tmp_path / "a.csv", [])
    columns = {"frame": [0], "x1": [[1.0, 2.0]], "y1": [1.0], "x2": [2.0], "y2": [2.0], "class": ["cat"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ColocamError, match=r"x1 .* is not a number"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"frame": "x"}, "row 3: frame 'x' is not a number"),
        ({"frame": ""}, "row 3: frame '' is not a frame index: give a whole number from 0"),
        ({"frame": -1}, "row 3: frame '-1' is not a frame index: give a whole number from 0"),
        ({"frame": "1e19"}, "row 3: frame '1e19' is not a frame index: give a whole number from 0"),
        ({"track": "1e300"}, "row 3: track '1e300' is not a track index: give a whole number from 0"),
        ({"pts": "-1e308"}, "row 3: pts '-1e308' is not a time in seconds"),
        ({"x2": "1e200"}, "row 3: x2 '1e200' is not a position in pixels"),
        ({"frame": 1.5}, "row 3: frame '1.5' is not a frame index: give a whole number from 0"),
        ({"frame": 40}, "row 3: frame '40' is beyond the 40 frames of clip one.mp4: is it the table of another video?"),
        ({"x1": "inf"}, "row 3: x1 'inf' is not a number"),
        ({"score": "high"}, "row 3: score 'high' is not a number"),
        ({"y2": ""}, "row 3: x1, y1, x2 and y2 must all be given or all be empty"),
        ({"x2": 0.5}, "row 3: a box needs x1 < x2 and y1 < y2, got [1.0, 2.0, 0.5, 4.0]"),
        (
            {"x2": 640},
            "row 3: the box [1.0, 2.0, 640.0, 4.0] lies outside the frame of 97×71: is it the",
        ),
        ({"class": " \t"}, "row 3: class '' is not a class, but the row has a box"),
        ({"track": -3}, "row 3: track '-3' is not a track index: give a whole number from 0"),
        ({"track": 0.5}, "row 3: track '0.5' is not a track index"),
        ({"mask": "123"}, "row 3: the mask '123'… does not fit an image of 97×71 pixels"),
        ({"mask": "a c"}, "row 3: the mask 'a c'… is not in COCO's compressed run lengths"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(tmp_path, wrong, says):
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4)), row(1, (1, 2, 3, 4)) | wrong])
    with pytest.raises(ColocamError) as error:
        read(table)
    assert str(error.value).startswith(f"{table}, ")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no column 'frame'; its columns are (none)"),
        (b"frame,class,x1,y1,x2\n0,cat,1,2,3\n", "no column 'y2'; its columns are frame, class, x1, y1, x2"),
        (b"frame,class,x1,y1,x2,y2,X1\n0,cat,1,2,3,4,5\n", "two columns are called 'x1': rename or remove one"),
        (b"frame,class,x1,y1,x2,y2\n", "the table has no rows"),
        (b"frame,class,x1,y1,x2,y2\n0,a,b,1,2,3,4\n", "row 2: more cells than columns: quote values"),
        (b"frame,class,x1,y1,x2,y2\n0,caf\xe9,1,2,3,4\n", "save it as 'CSV UTF-8'"),
    ],
)
def test_tables_that_are_none(tmp_path, content, says):
    table = write_table(tmp_path / "a.csv", [])
    table.write_bytes(content)
    with pytest.raises(ColocamError) as error:
        read(table)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(ColocamError, match="not a parquet table"):
        read(tmp_path / "a.parquet")


def test_files_that_are_missing(tmp_path):
    with pytest.raises(ColocamError, match=r"cannot read .*none\.csv: there is no such file"):
        read(tmp_path / "none.csv")
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4))])
    (tmp_path / "a.video.json").unlink()
    with pytest.raises(ColocamError, match=r"a\.video\.json is missing, .*: name it with `videos`"):
        read(table)


@pytest.mark.parametrize("change", [{"fps": "0"}, {"fps": "1/0"}, {"width": "wide"}, {"frames": 0}, {"format": 2}])
def test_a_description_that_is_none(tmp_path, change):
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4))])
    card = json.loads((tmp_path / "a.video.json").read_text())
    (tmp_path / "a.video.json").write_text(json.dumps(card | change))
    with pytest.raises(ColocamError, match="does not describe a video: restore it, or name the video with `videos`"):
        read(table)
    (tmp_path / "a.video.json").write_text("{")
    with pytest.raises(ColocamError, match="cannot be read: restore it, or name the video with `videos`"):
        read(table)


def test_videos_in_place_of_descriptions(tmp_path, make_video):
    """The video itself counts, also where its header is wrong about the number of frames."""
    times = [0.5, 0.6, 0.62, 1.5, 1.6]
    path = make_video(tmp_path / "video.mkv", 5, times=times)
    table = write_table(tmp_path / "a.csv", [row(4, (1, 2, 3, 4))])
    (tmp_path / "a.video.json").unlink()
    (video,) = read_videos([table], [path])
    assert (video.source.width, video.source.height, video.source.frames) == (64, 48, 5)
    assert video.source.path == path
    with pytest.raises(ColocamError, match="videos must name one video per table, got 2 for 1"):
        read_videos([table], [path, path])


def test_names_stay_inside_their_folder(tmp_path):
    names = ["...csv", ".. .csv", "b\tc.csv"]
    tables = [write_table(tmp_path / name, [row(0, (1, 2, 3, 4))]) for name in names]
    assert [video.name for video in read_videos(tables, [])] == ["video", "video-2", "b c"]
