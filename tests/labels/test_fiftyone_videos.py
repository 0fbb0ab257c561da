"""FiftyOne video labels by their documented format; its own importer reads them where it is installed."""

import json
import zlib
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels import export
from tests.helpers.label_scenes import row, write_table

MASK = np.zeros((48, 64), bool)
MASK[3:9, 4:8] = True


@pytest.fixture
def exported_video(tmp_path):
    rows = [
        row(0, (4, 3, 8, 9), "owl", 5, score=0.5, mask=rle.encode(MASK)),
        row(2, (16, 12, 32, 36), "cat"),
        row(2, (8, 6, 64, 48), "owl", 5, score=0.25),
        row(4),
    ]
    table = write_table(tmp_path / "my video.csv", rows, size=(64, 48), video="my video.mp4")
    return export([table], "fiftyone", tmp_path / "out")


def test_documented_format(exported_video):
    manifest = json.loads((exported_video / "manifest.json").read_text())
    (record,) = manifest["index"]
    assert record["data"] == str(exported_video.parent / "my video.mp4")
    frames = json.loads((exported_video / record["labels"]).read_text())["frames"]
    assert list(frames) == ["1", "3", "5"]
    assert frames["5"]["objects"]["objects"] == []
    cat, owl = frames["3"]["objects"]["objects"]
    corners = {"top_left": {"x": 0.25, "y": 0.25}, "bottom_right": {"x": 0.5, "y": 0.75}}
    assert (cat["label"], cat["bounding_box"], "confidence" in cat) == ("cat", corners, False)
    (first,) = frames["1"]["objects"]["objects"]
    assert owl["index"] == first["index"] != cat["index"]
    packed = zlib.decompress(b64decode(first["mask"]))
    np.testing.assert_array_equal(np.load(BytesIO(packed), allow_pickle=False), MASK[3:9, 4:8])


def test_folders_of_images_are_refused(tmp_path):
    table = write_table(tmp_path / "shot.csv", [row(0, (1, 2, 3, 4))], frames=1, pictures=["a.png"])
    with pytest.raises(ColocamError, match="shot is a folder of images"):
        export([table], "fiftyone", tmp_path / "out")
