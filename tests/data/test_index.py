"""Tables of frames become an index; what is written is what the training and the evaluation read."""

import csv

import cv2
import numpy as np
import pytest

from colocam.data.catalogue import read_catalogue
from colocam.data.truth import Index, Truth, count, index_of_table, read_truth, write_index
from colocam.errors import ColocamError
from colocam.types import Box, Clip
from colocam.video.images import image_size, read_image
from tests.helpers.csv_tables import csv_table

COLUMNS = "video,shot,frame,class,split,width,height,x1,y1,x2,y2"


def table_of(folder, rows, columns=COLUMNS):
    """Write the table and its pictures but for ``gone.jpg``."""
    names = {row.split(",")[2] for row in rows}
    for path in (folder / name for name in names if name and not name.endswith("gone.jpg")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cv2.imencode(".jpg", np.zeros((24, 32, 3), np.uint8))[1].tobytes())
    return csv_table(folder / "frames.csv", columns, *rows)


ROWS = [
    "cat/1,cat/1/a,f/cat/1/a/00000010.jpg,cat,train,32,24,,,,",
    "cat/1,cat/1/a,f/cat/1/a/00000011.jpg,cat,train,32,24,1,1,9,9",  # a box of a training frame is not passed on
    "cat/2,cat/2/a,f/cat/2/a/30.jpg,cat,val,32,24,2.9,3,20.25,21",
    "cat/2,cat/2/a,f/cat/2/a/9.jpg,cat,val,32,24,,,,",
    "dog/1,dog/1/a,f/dog/1/a/1.jpg,dog,test-public,32,24,0,0,32,24",
    "dog/1,dog/1/a,f/dog/1/a/1.jpg,dog,test-public,32,24,5,6,7,8",
    "dog/1,dog/1/b,f/dog/1/b/1.jpg,dog,test-public,32,24,5,6,7,8",
    "dog/2,dog/2/a,f/dog/2/a/1.jpg,dog,train,32,24,,,,",
]


def test_a_table_of_frames(tmp_path):
    index = index_of_table(table_of(tmp_path, ROWS))
    assert {(clip.name, clip.split, clip.video) for clip in index.clips} == {
        *(("cat/1/a", "train", "cat/1"), ("cat/2/a", "val", "cat/2"), ("dog/1/a", "test", "dog/1")),
        *(("dog/1/b", "test", "dog/1"), ("dog/2/a", "train", "dog/2")),
    }
    # frame 30 is the second of its clip; frame 9 has no label
    assert index.truth.frames == {
        "cat/2/a": {1: [(2.9, 3, 20.25, 21)]},
        "dog/1/a": {0: [(0, 0, 32, 24), (5, 6, 7, 8)]},
        "dog/1/b": {0: [(5, 6, 7, 8)]},
    }
    assert index.sizes["cat/2/a", 1] == (32, 24)


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_written_is_read_again(tmp_path, inside):
    source = tmp_path / "data"
    index = index_of_table(table_of(source, ROWS))
    out = source if inside else tmp_path / "out"
    manifest, truth = write_index(out, index)
    read = read_catalogue(manifest)
    assert {clip.name: clip for clip in read.clips} == {clip.name: clip for clip in index.clips}
    assert read_truth(truth) == index.truth
    with manifest.open(encoding="utf-8") as file:
        paths = [row["path"] for row in csv.DictReader(file)]
    assert all(path.startswith("f/") if inside else path.startswith("/") for path in paths)
    with truth.open(encoding="utf-8") as file:
        first = next(csv.DictReader(file))
    assert first["tag"] == "cat"
    assert first["video"] == "cat/2"
    assert (first["split"], first["width"], first["height"]) == ("val", "32", "24")


WITH_PRESENCE = COLUMNS.replace("x1", "present,id,x1")
PRESENCE_ROWS = [
    "lake,lake/a,f/lake/a/1.jpg,boat,val,32,24,0,,,,,",
    "lake,lake/a,f/lake/a/2.jpg,boat,val,32,24,1,7,1,2,9,9",
    "lake,lake/a,f/lake/a/2.jpg,boat,val,32,24,1,8,11,2,19,9",
    "lake,lake/a,f/lake/a/3.jpg,boat,val,32,24,1,,,,,",  # there, but nobody drew the box
    "lake,lake/a,f/lake/a/4.jpg,boat,val,32,24,,,,,,",
    "lake,lake/b,f/lake/b/1.jpg,boat,test,32,24,1,7,1,2,9,9",
    "lake,lake/b,f/lake/b/2.jpg,boat,test,32,24,1,,1,2,9,9",  # one box without an id: the clip has no identities
]


def test_presence_and_identities(tmp_path):
    index = index_of_table(table_of(tmp_path, PRESENCE_ROWS, WITH_PRESENCE))
    assert index.truth.frames == {
        "lake/a": {0: [], 1: [(1, 2, 9, 9), (11, 2, 19, 9)]},
        "lake/b": {0: [(1, 2, 9, 9)], 1: [(1, 2, 9, 9)]},
    }
    assert index.truth.ids == {"lake/a": {1: ["7", "8"]}}
    _, truth = write_index(tmp_path / "out", index)
    assert read_truth(truth) == index.truth


DOG = "dog/1,dog/1/a,f/dog/1/a/1.jpg,dog,val,32,24"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (f"{DOG},,,7,6,5,8", "a box needs x1 < x2"),
        (f"{DOG.replace('32', '')},,,5,6,7,8", "a frame with a box needs its width and height"),
        (f"{DOG},,,5,six,7,8", "y1 is 'six', which is not a number"),
        (f"{DOG},0,,1,2,9,9", "present is 0 but there is a box"),
        (f"{DOG.replace('val', 'later')},,,,,,", "split must be train, val or test, got 'later'"),
        (f"{DOG.replace('1.jpg', 'gone.jpg')},,,,,,", "there is no file"),
        (f"{DOG.replace('f/dog/1/a/1.jpg', '')},,,,,,", "frame, class, video and shot must not be empty"),
        (f"{DOG.replace('val', 'test')},,,,,,", "the shot 'dog/1/a' has a different tag, split"),
        (f"{DOG.replace(',dog,', ',cat,')},,,,,,", "the shot 'dog/1/a' has a different tag"),
    ],
)
def test_broken_tables(tmp_path, row, told):
    with pytest.raises(ColocamError, match=f"row 3: {told}"):
        index_of_table(table_of(tmp_path, [f"{DOG},,,,,,", row], WITH_PRESENCE))


def test_a_table_without_boxes(tmp_path):
    with pytest.raises(ColocamError, match="no column 'width'"):
        index_of_table(table_of(tmp_path, ["a,b,c,d,e"], "video,shot,frame,class,split"))


@pytest.mark.parametrize("orientation", [None, 1, 3, 6, 8])
def test_the_size_of_a_picture_is_that_of_its_pixels(tmp_path, orientation):
    from PIL import Image  # noqa: PLC0415

    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    path = tmp_path / "p.jpg"
    Image.new("RGB", (30, 20)).save(path, exif=exif)
    height, width = read_image(path).shape[:2]
    assert image_size(path) == (width, height)


def test_video_files_with_times_and_absent_objects(tmp_path):
    """An index need not be of images: parts of video files, and labeled frames without the object."""
    video = tmp_path / "video.mp4"
    video.touch()
    cut = [("a", "cat", 0.0, 1.5), ("b", "dog", 1.5, None)]
    clips = tuple(Clip(name, tag, "test", video, "video", start, end) for name, tag, start, end in cut)
    truth = Truth({"a": {0: [], 7: [Box(1, 2, 3, 4), Box(5, 6, 7, 8)]}, "b": {40: [Box(0, 0, 9, 9)]}})
    manifest, boxes = write_index(tmp_path, Index(clips, truth))
    assert read_catalogue(manifest).clips == clips
    assert read_truth(boxes) == truth
    counts = count(Index(clips, truth))
    assert {name: counts[f"test {name}"] for name in ("shots", "videos", "labeled frames", "boxes")} == {
        "shots": 2,
        "videos": 1,
        "labeled frames": 3,
        "boxes": 3,
    }
