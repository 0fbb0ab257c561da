"""COCO, read by pycocotools."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from colocam.boxes import rle
from colocam.labels import export
from tests.helpers.label_scenes import exported, row, scenes, write_table

FILE = "annotations/instances_default.json"


def rows_of(video):
    """Every box as (frame, class, corners), sorted."""
    return sorted((int(video.rows.frame[at]), video.rows.tag[at], *video.rows.box[at].tolist()) for at in video.objects)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pycocotools_reads_every_box_at_its_place(data):
    with exported(data.draw(scenes()), "coco") as (out, video):
        coco = COCO(out / FILE)
    names = {one["id"]: one["name"] for one in coco.loadCats(coco.getCatIds())}
    assert sorted(names) == list(range(1, len(names) + 1))
    read, grouped = [], {}
    for picture in coco.loadImgs(coco.getImgIds()):
        assert picture["file_name"] == f"clip one_{picture['frame_index']:06d}.jpg"
        for one in coco.loadAnns(coco.getAnnIds(imgIds=picture["id"])):
            x, y, w, h = one["bbox"]
            read.append((picture["frame_index"], names[one["category_id"]], x, y, x + w, y + h))
            assert one["area"] == pytest.approx(w * h)
            assert one["iscrowd"] == 0
            assert one["attributes"]["track_id"] == one["track_id"]
            grouped.setdefault(one["track_id"], set()).add(picture["frame_index"])
    assert [one[:2] for one in sorted(read)] == [one[:2] for one in rows_of(video)]
    np.testing.assert_allclose([one[2:] for one in sorted(read)], [one[2:] for one in rows_of(video)], atol=1e-9)
    assert sorted(one["frame_index"] for one in coco.dataset["images"]) == video.listed.tolist()
    assert grouped == {track.id: set(video.rows.frame[track.rows].tolist()) for track in video.tracks}


def test_several_videos_share_classes_and_nothing_else(tmp_path):
    box = (1.5, 2, 30, 40)
    tables = [
        write_table(tmp_path / "a" / "x.csv", [row(0, box, "dog", 5), row(1), row(2, box, "dog", 5)]),
        write_table(tmp_path / "b" / "x.csv", [row(0, box, "cat"), row(1, box, "dog")], size=(200, 100), fps="30/7"),
    ]
    coco = COCO(export(tables, "coco", tmp_path / "out") / FILE)
    assert [one["name"] for one in coco.dataset["categories"]] == ["cat", "dog"]
    assert [one["name"] for one in coco.dataset["videos"]] == ["a_x", "b_x"]
    assert [one["fps"] for one in coco.dataset["videos"]] == [25, pytest.approx(30 / 7)]
    assert [(one["video_id"], one["width"]) for one in coco.dataset["images"]] == [(1, 97)] * 3 + [(2, 200)] * 2
    assert len({one["file_name"] for one in coco.dataset["images"]}) == 5
    of = {one["id"]: (one["video_id"], one["frame_index"]) for one in coco.dataset["images"]}
    boxed = [(of[one["image_id"]], one["video_id"]) for one in coco.dataset["annotations"]]
    assert boxed == [((1, 0), 1), ((1, 2), 1), ((2, 0), 2), ((2, 1), 2)]
    assert [one["track_id"] for one in coco.dataset["annotations"]] == [1, 1, 2, 3]
    assert [(one["id"], one["video_id"], one["category_id"]) for one in coco.dataset["tracks"]] == [
        (1, 1, 2),
        (2, 2, 1),
        (3, 2, 2),
    ]
    assert [one["category_id"] for one in coco.dataset["annotations"]] == [2, 2, 1, 2]


def test_masks_come_back_and_evaluate_as_perfect():
    masks = np.zeros((3, 71, 97), bool)
    masks[0, 3:9, 5:40] = True
    masks[1, :, :] = True
    masks[2, 70, 96] = True
    boxes = [(5, 3, 40, 9), (0, 0, 97, 71), (96, 70, 97, 71)]
    rows = [row(i, boxes[i], score=0.5, mask=rle.encode(masks[i])) for i in range(3)] + [row(3, boxes[0])]
    with exported(rows, "coco") as (out, _):
        coco = COCO(out / FILE)
    annotations = coco.loadAnns(coco.getAnnIds())
    for one, mask in zip(annotations, masks, strict=False):
        np.testing.assert_array_equal(coco.annToMask(one), mask)
        assert one["area"] == mask.sum()
        assert one["score"] == 0.5
    assert annotations[3]["segmentation"] == []
    for kind in ("bbox", "segm"):
        validator = COCOeval(coco, coco.loadRes([one for one in annotations if "score" in one]), kind)
        validator.params.imgIds = [1, 2, 3]
        validator.evaluate()
        validator.accumulate()
        validator.summarize()
        assert validator.stats[0] == pytest.approx(1)


def test_what_is_stated_of_a_box_is_kept():
    stated = {"probability": 0.75, "presence": 0.5, "score": 0.25, "pts": 1.25, "refined": "MobileSAM"}
    with exported([row(0, (1, 2, 3, 4), **stated)], "coco") as (out, _):
        data = json.loads((out / FILE).read_text(encoding="utf-8"))
    (one,) = data["annotations"]
    assert one["score"] == 0.25
    told = {name: stated[name] for name in ("probability", "presence", "refined")}
    assert one["attributes"] == {"occluded": False, "track_id": 1, **told}
    assert data["images"][0]["pts"] == 1.25
