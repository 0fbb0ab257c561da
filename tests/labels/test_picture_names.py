"""A folder of pictures in an export: the files keep their names and their bytes."""

import csv
import json

import cv2
import numpy as np
import PIL.Image
import pytest

from colocam.errors import ColocamError
from colocam.labels import Options, export
from colocam.video.description import read_source
from tests.helpers.label_scenes import row, write_table

IMAGES = Options(images=True)
NAMES = ["IMG 7.png", "IMG 8.png", "IMG 10.jpeg"]


@pytest.fixture
def folder(tmp_path, numbered):
    """Three numbered pictures of 64×48."""
    (tmp_path / "pets").mkdir()
    for name, picture in zip(NAMES, numbered(3, 64, 48), strict=True):
        cv2.imwrite(str(tmp_path / "pets" / name), picture[..., ::-1])
    return tmp_path / "pets"


@pytest.fixture
def table(folder):
    def write(name="pets", pictures=NAMES):
        rows = [row(frame, (frame, 2, frame + 20, 40)) for frame in range(len(pictures))]
        path, count = folder.parent / f"{name}.csv", len(pictures)
        return write_table(path, rows, size=(64, 48), frames=count, video=folder.name, pictures=pictures)

    return write


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("to", "images", "listing", "line"),
    [
        ("coco", "images", "annotations/instances_default.json", '"file_name": "IMG 10.jpeg"'),
        ("yolo", "images/train", "train.txt", "./images/train/IMG 10.jpeg\n"),
        ("voc", "JPEGImages", "Annotations/IMG 10.xml", "<filename>IMG 10.jpeg</filename>"),
    ],
)
def test_readers_find_the_pictures_and_their_boxes(
    table, tmp_path, folder, number_of, read_by_supervision, to, images, listing, line
):
    out = export([table()], to, tmp_path / "out", options=IMAGES)
    assert line in (out / listing).read_text("utf-8")
    found = {number_of(image): boxes.xyxy[0, 0] for _, image, boxes in read_by_supervision(out, to)}
    assert sorted(found) == [0, 1, 2]
    assert all(abs(left - number) < 1.01 for number, left in found.items())
    for path in folder.iterdir():
        assert (out / images / path.name).read_bytes() == path.read_bytes()


def test_of_several_tables_the_names_go_before(table, video, tmp_path):
    out = export([table(), video], "coco", tmp_path / "out", options=IMAGES)
    assert names(out / "images") == sorted(
        [*(f"pets_{name}" for name in NAMES), *(f"my video_{frame:06d}.jpg" for frame in range(12))]
    )


def test_names_that_are_one_without_their_endings_are_numbered(table, folder, tmp_path):
    (folder / NAMES[1]).rename(folder / "img 7.jpg")
    out = export([table(pictures=[NAMES[0], "img 7.jpg", NAMES[2]])], "yolo", tmp_path / "out", options=IMAGES)
    assert names(out / "labels" / "train") == [f"pets_00000{number}.txt" for number in range(3)]
    assert names(out / "images" / "train") == [f"pets_00000{number}.jpg" for number in range(3)]


def test_a_turned_picture_is_written_upright(folder, table, tmp_path, numbered, number_of):
    """Its boxes are in the pixels of what is shown; not every reader turns it."""
    upright = PIL.Image.fromarray(numbered(3, 64, 48)[2])
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise
    upright.transpose(PIL.Image.Transpose.ROTATE_90).save(folder / NAMES[2], format="JPEG", exif=exif, quality=95)
    out = export([table()], "coco", tmp_path / "out", options=IMAGES)
    written = np.asarray(PIL.Image.open(out / "images" / NAMES[2]))
    assert written.shape == (48, 64, 3)
    assert number_of(written) == 2


def test_tables_name_the_pictures(table, tmp_path):
    first = export([table()], "csv", tmp_path / "first") / "pets.csv"
    rows = list(csv.DictReader(first.open(encoding="utf-8")))
    assert [(row["frame"], row["picture"]) for row in rows] == [(str(n), name) for n, name in enumerate(NAMES)]
    again = export([first], "csv", tmp_path / "again")
    assert (again / "pets.csv").read_bytes() == first.read_bytes()
    assert read_source(again / "pets.csv") == read_source(first)


def test_mot_wants_jpeg_and_numbers(table, tmp_path, number_of):
    out = export([table()], "mot", tmp_path / "out", options=IMAGES)
    for number in range(3):
        path = out / "pets" / "img1" / f"00000{number + 1}.jpg"
        assert path.read_bytes()[:2] == b"\xff\xd8"
        assert number_of(cv2.imread(str(path))) == number


def test_a_picture_that_is_gone_or_lies_elsewhere(table, folder, tmp_path):
    missing = table()
    (folder / NAMES[1]).unlink()
    with pytest.raises(ColocamError, match=r"IMG 8\.png cannot be read, but pets lists it: name the folder with"):
        export([missing], "coco", tmp_path / "out", options=IMAGES)
    assert not (tmp_path / "out").exists()
    for pictures in (["../pets/IMG 7.png", *NAMES[1:]], NAMES[:2]):
        wrong = table(pictures=NAMES)
        card = wrong.with_name("pets.video.json")
        card.write_text(json.dumps({**json.loads(card.read_text("utf-8")), "pictures": pictures}), "utf-8")
        with pytest.raises(ColocamError, match=r"pets\.video\.json does not describe a video"):
            export([wrong], "coco", tmp_path / "out")
