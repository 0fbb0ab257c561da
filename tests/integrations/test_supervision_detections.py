"""Detections as supervision's own annotators and filters take them; masks are decoded by pycocotools."""

import numpy as np
import pytest
import supervision as sv
from pycocotools import mask as coco_mask

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.integrations.supervision_detections import frame_detections, table_detections
from colocam.types import Box, Localization
from tests.helpers.label_scenes import row, write_table

HEAT = np.zeros((4, 4), np.float32)


def localization(box, *, tag="cat", **more):
    return Localization(3, 0.12, tag, 0.9, None if box is None else Box(*box), 0.75, HEAT, **more)


def test_one_frame():
    mask = np.zeros((48, 64), bool)
    mask[10:30, 5:25] = True
    found = frame_detections([localization((5, 10, 25, 30), track=7, mask=mask)], ("bus", "cat"))
    assert found.xyxy.tolist() == [[5, 10, 25, 30]]
    assert found.confidence.tolist() == [0.75]
    assert found.class_id.tolist() == [1]
    assert found.tracker_id.tolist() == [7]
    assert found["class_name"].tolist() == ["cat"]
    np.testing.assert_array_equal(found.mask, mask[None])
    drawn = sv.MaskAnnotator(sv.Color(255, 255, 255), opacity=1.0).annotate(np.zeros((48, 64, 3), np.uint8), found)
    np.testing.assert_array_equal(drawn[..., 0] > 0, mask)
    assert sv.BoxAnnotator().annotate(np.zeros((48, 64, 3), np.uint8), found)[10, 5].any()


def test_nothing_found_is_empty_and_merges():
    found = [frame_detections([localization(None)]), frame_detections([localization((1, 2, 3, 4))])]
    assert found[0].is_empty()
    assert sv.Detections.merge(found).xyxy.tolist() == [[1, 2, 3, 4]]


def test_several_objects_of_a_frame():
    mask = np.ones((4, 4), bool)
    found = frame_detections(
        [
            localization((0, 0, 2, 2), tag="owl", track=1, mask=mask),
            localization(None, tag="owl"),
            localization((1, 1, 3, 3), tag="cat", track=2),
        ]
    )
    assert found.class_id.tolist() == [1, 0]  # of cat, owl
    assert found.tracker_id.tolist() == [1, 2]
    assert found.mask is None
    assert found[found["class_name"] == "cat"].xyxy.tolist() == [[1, 1, 3, 3]]


def test_unknown_class():
    with pytest.raises(ColocamError, match="tags must hold every class, got none for cat: did you mean 'cats'"):
        frame_detections([localization((1, 2, 3, 4))], ["cats"])


def test_table(tmp_path):
    mask = np.zeros((48, 64), bool)
    mask[3:9, 4:8] = True
    rows = [
        row(0, (4.5, 3, 8, 9), "owl", 5, score=0.5, mask=rle.encode(mask)),
        row(2, (1, 2, 30, 40), "cat", score=0.25),
        row(2, (5, 6, 9, 10.25), "owl", 5),
        row(4),
    ]
    table = write_table(tmp_path / "new.csv", rows, size=(64, 48))
    found = dict(table_detections(table))
    assert list(found) == [0, 2, 4]
    assert found[0].xyxy.tolist() == [[4.5, 3, 8, 9]]
    decoded = coco_mask.decode({"size": [48, 64], "counts": rows[0]["mask"]})
    np.testing.assert_array_equal(found[0].mask[0], decoded.astype(bool))
    assert found[2].xyxy.tolist() == [[1, 2, 30, 40], [5, 6, 9, 10.25]]
    assert found[2].confidence.tolist() == [0.25, 1.0]
    assert found[2].class_id.tolist() == [0, 1]
    assert found[2].tracker_id[1] == found[0].tracker_id[0] != found[2].tracker_id[0]
    assert found[4].is_empty()


def test_without_supervision(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "supervision", None)
    with pytest.raises(
        ColocamError, match=r"supervision, which .* is not installed: pip install 'colocam\[supervision\]'"
    ):
        frame_detections([localization((1, 2, 3, 4))])
