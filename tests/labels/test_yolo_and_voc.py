"""YOLO, Pascal VOC and COCO, read by supervision, which needs the pictures; and VOC by hand where it rounds."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml

from colocam.errors import ColocamError
from colocam.labels import Options, export
from colocam.labels.formats.writing import color
from tests.helpers.label_scenes import exported, row, write_table


@pytest.mark.parametrize(("to", "precision"), [("coco", 1e-3), ("yolo", 1e-3), ("voc", 0.5)])
def test_supervision_reads_every_box_with_its_picture(video, tmp_path, read_by_supervision, to, precision):
    data = read_by_supervision(export([video], to, tmp_path / "out", options=Options(images=True)), to)
    assert data.classes == ["cat"]
    assert len(data) == 12
    for path, _, found in data:
        frame = int(Path(path).stem[-6:])
        expected = np.reshape([] if frame in {4, 5} else [[frame, 2.5, frame + 20.25, 40]], (-1, 4))
        np.testing.assert_allclose(found.xyxy.reshape(-1, 4), expected, atol=precision)


def test_voc_of_a_whole_picture_is_its_first_and_last_pixel():
    with exported([row(0, (0, 0, 97, 71))], "voc") as (out, _):
        (tree,) = (ET.parse(path) for path in (out / "Annotations").iterdir())
    assert [one.text for one in tree.find("object/bndbox")] == ["1", "1", "97", "71"]


def test_voc_colors_are_those_of_voc(video, tmp_path):
    out = export([video], "voc", tmp_path / "out")
    assert (out / "labelmap.txt").read_text().splitlines()[1:] == ["background:0,0,0::", "cat:128,0,0::"]
    assert [color(number) for number in (0, 1, 2, 3, 4, 8, 15, 20)] == [
        (0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (64, 0, 0), (192, 128, 128), (0, 64, 128),
    ]  # fmt: skip


def test_voc_refuses_what_its_label_map_cannot_hold(tmp_path):
    table = write_table(tmp_path / "a.csv", [row(0, (1, 2, 3, 4), "a:b")])
    with pytest.raises(ColocamError, match="cannot hold the class 'a:b': remove the colon"):
        export([table], "voc", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def split_of(out):
    """Split → names of its videos, by ``data.yaml`` as a trainer reads it; all images of the lists have labels."""
    lists = yaml.safe_load((out / "data.yaml").read_text())
    videos = {}
    for split in ("train", "val", "test"):
        lines = (out / lists[split]).read_text().splitlines() if split in lists else []
        videos[split] = {line.rsplit("/", 1)[1].split("_")[0] for line in lines}
        assert all((out / line.replace("images", "labels").replace(".jpg", ".txt")).is_file() for line in lines)
        assert len(lines) == 2 * len(videos[split])
    return videos


@pytest.mark.parametrize(("count", "validation", "test"), [(1, 0, 0), (2, 1, 0), (3, 1, 1), (10, 1, 1), (25, 2, 2)])
def test_each_video_is_in_one_split(tmp_path, count, validation, test):
    names = [f"v{number}" for number in range(count)]
    tables = [write_table(tmp_path / f"{name}.csv", [row(0, (1, 2, 3, 4)), row(1)]) for name in names]
    told = []
    out = export(tables, "yolo", tmp_path / "out", tell=told.append)
    videos = split_of(out)
    assert {split: len(own) for split, own in videos.items()} == {
        "train": count - validation - test,
        "val": validation,
        "test": test,
    }
    assert sorted(name for own in videos.values() for name in own) == sorted(names)
    if count == 1:
        assert "export several videos together" in told[0]
        assert "export several videos together" in (out / "data.yaml").read_text()
    else:
        assert told == [f"split by video: {count - validation - test} train, {validation} val, {test} test"]
    assert split_of(export(tables[::-1], "yolo", tmp_path / "again")) == videos  # in whatever order they are named
    voc = export(tables, "voc", tmp_path / "voc") / "ImageSets" / "Main"
    for split, own in videos.items():
        assert {line.split("_")[0] for line in (voc / f"{split}.txt").read_text().splitlines()} == own


def test_shares_of_the_command(tmp_path, colocam):
    tables = [write_table(tmp_path / f"v{number}.csv", [row(0, (1, 2, 3, 4)), row(1)]) for number in range(10)]

    def export_with(split):
        return colocam("export", *tables, "--to", "yolo", "-o", tmp_path / "out", "--split", split)

    done = export_with("60/40")
    assert "split by video: 6 train, 4 val, 0 test\n" in done.err
    assert split_of(tmp_path / "out")["test"] == set()
    assert "split by video: 5 train, 3 val, 2 test\n" in export_with("5/3/2").err
    for wrong in ("0/1", "", "a/b", "1/2/3/4", "80/-10/30", "nan/1"):
        done = export_with(wrong)
        assert done.code == 1
        assert done.err == f"error: --split must be shares such as 80/10/10 or 80/20, got '{wrong}'\n"


@pytest.mark.parametrize(
    ("edges", "pixels"),
    [((12.625, 12.75), 13), ((0, 0.25), 1), ((96.7, 97), 97), ((12.4, 13.4), 13), ((12.5, 13.5), 13)],
)
def test_voc_of_a_sliver_is_one_pixel_that_it_lies_in(edges, pixels):
    with exported([row(0, (edges[0], 5, edges[1], 9))], "voc") as (out, _):
        (tree,) = (ET.parse(path) for path in (out / "Annotations").iterdir())
    assert int(tree.findtext("object/bndbox/xmin")) == pixels
    assert int(tree.findtext("object/bndbox/xmax")) - pixels in {0, 1}
    assert [int(tree.findtext(f"object/bndbox/{name}")) for name in ("ymin", "ymax")] == [6, 9]
