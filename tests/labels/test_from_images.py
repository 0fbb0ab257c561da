"""COCO, YOLO and VOC as supervision writes them, and the variants of CVAT, whose pixels and names differ."""

import json

import cv2
import numpy as np
import pytest
import supervision as sv

from colocam.errors import ColocamError
from colocam.labels import import_labels
from tests.helpers.label_scenes import row, write_table

DRAWN = (3.0, 4.0, 33.0, 44.0)


@pytest.fixture
def data_set(tmp_path):
    """Three frames of ``video`` by their exported names: a new box, no object, the predicted box."""
    images, annotations = [], {}
    for frame, box in ((3, DRAWN), (4, None), (5, (10.0, 20.0, 50.0, 60.0))):
        path = tmp_path / "drawn" / f"video_{frame:06d}.jpg"
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), np.zeros((71, 97, 3), np.uint8))
        images.append(str(path))
        xyxy = np.array([] if box is None else [box], np.float32).reshape(-1, 4)
        annotations[str(path)] = sv.Detections(xyxy, class_id=np.ones(len(xyxy), int))
    return sv.DetectionDataset(["bird", "cat"], images, annotations)


@pytest.mark.parametrize("to", ["coco", "yolo", "voc"])
def test_labels_that_supervision_writes(tmp_path, table, data_set, brief, to):
    out = tmp_path / "out"
    if to == "coco":
        data_set.as_coco(annotations_path=str(out / "labels.json"))
    elif to == "yolo":
        data_set.as_yolo(annotations_directory_path=str(out / "labels"), data_yaml_path=str(out / "data.yaml"))
    else:
        data_set.as_pascal_voc(annotations_directory_path=str(out))
    found = import_labels(out, to, tables=[table])
    expected = {3: ("box", pytest.approx(DRAWN, abs=0.01), True), 4: ("none", True)}
    expected[5] = ("accepted", pytest.approx((10, 20, 50, 60), abs=0.01), False)
    assert brief(found.corrections) == expected
    assert not found.left_out


def test_coco_by_frame_index_and_by_the_names_of_cvat(tmp_path, table, brief):
    """CVAT names frames of a video ``frame_000012``, which says nothing of the video."""
    content = {
        "categories": [{"id": 4, "name": "cat", "supercategory": ""}, {"id": 5, "name": "cow"}],
        "images": [{"id": 1, "width": 97, "height": 71, "file_name": "frame_000012.PNG", "license": 0}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 4, "bbox": [3.0, 4.0, 30.0, 40.0], "iscrowd": 0},
            {"id": 2, "image_id": 1, "category_id": 5, "bbox": [3, 4, 30, 40]},
            {"id": 3, "image_id": 1, "category_id": 4, "bbox": [3, 4, 30, 40], "iscrowd": 1},
            {"id": 4, "image_id": 9, "category_id": 4, "bbox": [3, 4, 30, 40]},
        ],
    }
    path = tmp_path / "instances_default.json"
    path.write_text(json.dumps(content))
    found = import_labels(path, "coco", tables=[table])
    assert found.corrections == []
    assert sorted(found.left_out.values()) == [1, 1, 1]
    assert any("class 'cow' is unknown" in reason for reason in found.left_out)
    content["annotations"] = content["annotations"][:1]
    path.write_text(json.dumps(content))
    assert brief(import_labels(path, "coco", tables=[table]).corrections) == {12: ("box", DRAWN, True)}
    two = [table, write_table(tmp_path / "boxes" / "two.csv", [row(0, (1, 2, 3, 4))])]
    assert import_labels(path, "coco", tables=two).corrections == []  # which video is it?


def test_voc_counts_from_one_unless_cvat_wrote_it(tmp_path, table, brief):
    def write(folder, corners):
        folder.mkdir()
        names = ("xmin", "ymin", "xmax", "ymax")
        box = "".join(f"<{name}>{corner}</{name}>" for name, corner in zip(names, corners, strict=True))
        size = "<size><width>97</width><height>71</height><depth>3</depth></size>"
        text = f"<filename>video_000003.jpg</filename>{size}<object><name>cat</name><bndbox>{box}</bndbox></object>"
        (folder / "video_000003.xml").write_text(f"<annotation><folder></folder>{text}</annotation>")
        return folder

    standard = write(tmp_path / "standard", (4, 5, 33, 44))
    cvat = write(tmp_path / "cvat", ("3.0", "4.0", "33.0", "44.0"))
    for folder in (standard, cvat):
        assert brief(import_labels(folder, "voc", tables=[table]).corrections) == {3: ("box", DRAWN, True)}


def test_yolo_outlines_confidences_and_the_folder_of_cvat(tmp_path, table, brief):
    labels = tmp_path / "task" / "obj_train_data"
    labels.mkdir(parents=True)
    (tmp_path / "task" / "obj.names").write_text("cat\n")
    (tmp_path / "task" / "train.txt").write_text("data/obj_train_data/frame_000003.jpg\n")
    (labels / "frame_000003.txt").write_text("0 0.1 0.2 0.5 0.2 0.5 0.9\n")
    (labels / "frame_000004.txt").write_text("")
    (labels / "frame_000005.txt").write_text("0 0.5 0.5 0.2 0.4 0.87\n")
    told = brief(import_labels(tmp_path / "task", "yolo", tables=[table]).corrections)
    assert told == {
        3: ("box", pytest.approx((9.7, 14.2, 48.5, 63.9)), True),
        4: ("none", True),
        5: ("box", pytest.approx((38.8, 21.3, 58.2, 49.7)), True),
    }


def test_images_of_another_video_are_left_out(tmp_path, table):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "classes.txt").write_text("cat\n")
    for name in ("holiday_000001.txt", "notes.txt"):
        (tmp_path / "labels" / name).write_text("0 0.5 0.5 0.2 0.4\n")
    found = import_labels(tmp_path / "labels", "yolo", tables=[table])
    assert found.corrections == []
    assert dict(found.left_out) == {
        "image 'notes.txt': its name has no frame index, and no table lists such an image": 1,
        "boxes of 'holiday': no table is of this video": 1,
    }


def test_two_folders_of_images_with_the_same_names(tmp_path):
    """The folder before the file name tells them apart, and so does the name of the table in an export."""
    tables = [
        write_table(
            tmp_path / f"{name}.csv",
            [row(0, (1, 2, 30, 40))],
            video=f"{name} files",
            frames=2,
            pictures=("a.png", "b.png"),
        )
        for name in ("one", "two")
    ]
    labels = tmp_path / "labels"
    labels.mkdir()
    (labels / "classes.txt").write_text("cat\n")
    (labels / "two_a.txt").write_text("0 0.5 0.5 0.2 0.4\n")
    (labels / "a.txt").write_text("0 0.5 0.5 0.2 0.4\n")
    found = import_labels(labels, "yolo", tables=tables)
    assert [(one.video, one.frame) for one in found.corrections] == [("two", 0)]
    assert len(found.left_out) == 1


CVAT = "<annotations><track label='cat'><box{}/></track></annotations>"


@pytest.mark.parametrize(
    ("format_", "name", "text", "told"),
    [
        ("coco", "a.json", "[]", "no 'images'"),
        ("coco", "a.json", '{"images": [{"id": 1}], "annotations": [{"bbox": [1, 2]}]}', None),
        ("cvat", "a.xml", "{}", "not XML"),
        ("cvat", "a.xml", "<annotation/>", "not CVAT's XML"),
        ("cvat", "a.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><annotations>&b;</annotations>", "declares entities"),
        ("cvat", "a.xml", CVAT.format(" frame='1' xtl='a'"), "must be a number"),
        ("cvat", "a.xml", CVAT.format(" frame='-1'"), "must be a whole number"),
        ("cvat", "a.xml", CVAT.format(""), "has no frame"),
        ("cvat", "a.xml", b"\xff\xfe<", "not text in UTF-8"),
        ("voc", "a.xml", "<annotations/>", "not Pascal VOC"),
        ("voc", "a.xml", "<annotation><object/></annotation>", "has no name"),
        ("yolo", "a.txt", "0 1 2 3 4", "no data.yaml"),
        ("mot", "gt.txt", "0,1,2,3,4,5", "frames of MOT count from 1, got '0'"),
        ("mot", "gt.txt", "1,1,2,3,4,5", "no labels.txt beside it"),
        ("csv", "a.csv", "x1,y1,x2,y2\n1,2,3,4", "no column 'frame' or 'pts'"),
        ("csv", "a.csv", "frame,class,x1,y1,x2,y2\n1.5,cat,1,2,3,4", "frame '1.5' is not a frame index"),
        ("csv", "a.csv", "frame,class,x1,y1,x2,y2\n1,,1,2,3,4", "has a box, but no class"),
        ("csv", "a.csv", "frame,class,x1,y1,x2,y2\n1,cat,,2,3,4", "must all be given"),
        ("csv", "a.csv", "frame,class,x1,y1,x2,y2\n1,cat,1,2,nan,4", "must all be given or all be empty"),
    ],
)
def test_nonsense_is_refused_with_the_file(tmp_path, format_, name, text, told):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if told is None:
        assert import_labels(tmp_path / "in", format_).corrections == []
        return
    with pytest.raises(ColocamError, match=told):
        import_labels(tmp_path / "in", format_)
