"""Predictions from files: equal to a run's own evaluation, and against counts by hand."""

import json
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest

from colocam.boxes import largest_boxes, scale_boxes
from colocam.config import read_config, write_config
from colocam.data.batches import spread_samples
from colocam.data.truth import read_truth
from colocam.errors import ColocamError
from colocam.evaluation.metrics import CorLoc
from colocam.evaluation.prediction_evaluation import evaluate_predictions
from colocam.evaluation.result import EvaluatedData
from colocam.evaluation.run_evaluation import evaluate, labeled, maps_of
from colocam.maps.mapper import Mapper
from colocam.run import open_run
from tests.helpers.csv_tables import csv_table

FRAME = (48, 40)


# against a run


def colorful(frames, classes):
    """How far a pixel is from gray: finds the squares over gray noise; a cat only above a bright ground."""
    maps = (frames.amax(1) - frames.amin(1)) / 255
    maps[classes == 1, 8:] = maps[classes == 1, 8:].clamp(min=0.45)
    return maps, None


@pytest.fixture(scope="module")
def own(trained, collection, tmp_path_factory):
    """A run whose validation looks at every frame, its evaluation, and the maps of its val and test frames.

    The tiny run's own maps are never right, and zeros are easily equal: colorful stands in for them.
    """
    folder = tmp_path_factory.mktemp("own") / "run"
    shutil.copytree(trained, folder)
    config = read_config(folder / "config.yaml")
    frames = config.frames.model_copy(update={"per_val_clip": 5})
    write_config(folder / "config.yaml", config.model_copy(update={"frames": frames}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "colocam.evaluation.run_evaluation.methods_of_run", lambda *_, **__: {"colocam": Mapper(colorful)}
        )
        result = evaluate(folder, collection.truth)
    run = open_run(folder)
    maps = {}
    tests = labeled(run, read_truth(collection.truth), "test").samples
    for samples in (tests, spread_samples(run.clips("val"), run.catalogue.tags, 5)):
        levels = maps_of(run, Mapper(colorful), samples)
        maps |= {(c.clip.name, frame): level for (c, frame), level in zip(samples.where(), levels, strict=True)}
    return result, maps


def save_maps(folder, maps, suffix=".npy"):
    for (clip, frame), values in maps.items():
        path = folder / clip / f"{frame:04d}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".npy":
            np.save(path, values)
        else:
            path.write_bytes(cv2.imencode(".png", values)[1].tobytes())
    return folder


@pytest.mark.parametrize("kind", ["uint8", "png", "float"])
def test_maps_of_a_run_give_its_own_evaluation(own, collection, tmp_path, kind):
    result, maps = own
    if kind == "float":  # levels are ⌊255·map⌋
        maps = {key: ((level + 0.5) / 255.5).astype(np.float32) for key, level in maps.items()}
    folder = save_maps(tmp_path / "maps", maps, ".png" if kind == "png" else ".npy")
    found = evaluate_predictions(folder, collection.truth, manifest=collection.manifest)
    assert 0 < result.methods["colocam"]["tags-only"].average < result.methods["colocam"]["oracle-per-class"].average
    for protocol, cell in result.methods["colocam"].items():
        assert found.maps[protocol] == replace(cell, top1=None, top5=None)
    assert found.data.missing == 0
    assert found.data.frames == result.data.frames
    assert found.max_box_acc["0.5"] == pytest.approx(result.methods["colocam"]["oracle-global"].frames)


def box_table(path, boxes, tags=None):
    """A table of ``{(clip, frame): box}``."""
    lines = []
    for (clip, frame), box in boxes.items():
        corners = ",".join(repr(float(side)) for side in box) if box is not None else ",,,"
        lines.append(f"{clip},{frame},{corners}" + (f",{tags[clip, frame]}" if tags else ""))
    return csv_table(path, "clip,frame,x1,y1,x2,y2" + (",tag" if tags else ""), *lines)


def test_boxes_of_a_run_give_its_own_evaluation(own, collection, tmp_path):
    result, maps = own
    cell = result.methods["colocam"]["tags-only"]
    boxes = {}
    for key, level in maps.items():
        (box,), (found,) = largest_boxes(level[None], cell.threshold)
        boxes[key] = scale_boxes(box, (32, 32), FRAME) if found else None
    table = box_table(tmp_path / "boxes.csv", boxes)
    again = evaluate_predictions(table, collection.truth, manifest=collection.manifest, size=32)
    assert again.boxes == replace(cell, threshold=None, top1=None, top5=None)


# by hand


@pytest.fixture
def truth(tmp_path):
    """Three frames of cats (two videos), one of a dog with two boxes, one without the object."""
    rows = [
        *("a/1,0,1,10,10,29,29,cat,a", "a/1,7,1,10,10,29,29,cat,a", "a/2,0,1,0,0,9,9,cat,b", "a/2,1,0,,,,,cat,b"),
        *("d/1,3,1,0,0,9,9,dog,d", "d/1,3,1,20,20,39,39,dog,d"),
    ]
    return csv_table(tmp_path / "truth.csv", "clip,frame,present,x1,y1,x2,y2,tag,video", *rows)


BOXES = {
    ("a/1", 0): (10, 10, 29, 29),
    ("a/1", 7): (10, 10, 29, 29),
    ("a/2", 0): (0, 0, 9, 9),
    ("d/1", 3): (20, 20, 39, 39),
}


def test_perfect_boxes(tmp_path, truth):
    found = evaluate_predictions(box_table(tmp_path / "b.csv", BOXES), truth)
    assert found.boxes == CorLoc(100, (100, 100), 100, {"cat": 100, "dog": 100})
    assert found.max_box_acc == {"0.3": 100, "0.5": 100, "0.7": 100, "mean": 100}
    assert found.data == EvaluatedData("test", frames=4, videos=3, clips=3, boxes=5, classes=2, missing=0)
    assert found.classification is None
    assert found.to_json()["boxes"] == {
        "average": 100,
        "interval": [100, 100],
        "frames": 100,
        "classes": {"cat": 100, "dog": 100},
    }


@pytest.mark.parametrize(
    ("shift", "iou"),
    # pixels count inclusively: 20×20 boxes, (20−s)·20 common, (20+s)·20 in the union
    [(2, 18 / 22), (3, 17 / 23), (4, 16 / 24), (6, 14 / 26), (7, 13 / 27), (10, 10 / 30), (11, 9 / 31), (20, 0)],
)
def test_shifted_boxes(tmp_path, truth, shift, iou):
    boxes = BOXES | {("a/1", 0): (10 + shift, 10, 29 + shift, 29)}
    found = evaluate_predictions(box_table(tmp_path / "b.csv", boxes), truth)
    assert found.max_box_acc == pytest.approx(
        {f"{least:g}": 100 if iou >= least else 75 for least in (0.3, 0.5, 0.7)}
        | {"mean": np.mean([100 if iou >= least else 75 for least in (0.3, 0.5, 0.7)])}
    )
    assert found.boxes.classes["cat"] == pytest.approx(100 if iou >= 0.5 else 200 / 3)
    assert found.boxes.average == pytest.approx((found.boxes.classes["cat"] + 100) / 2)


def test_several_boxes_a_frame(colocam, tmp_path):
    """Three true boxes; the table has two of them, one of these twice, and one beside."""
    lines = ["a,0,1,0,0,9,9,cat,40,40", "a,0,1,20,0,29,9,cat,40,40", "a,0,1,0,20,9,29,cat,40,40"]
    lines += ["a,1,1,0,0,9,9,cat,40,40", "a,2,0,,,,,cat,40,40"]
    truth = csv_table(tmp_path / "truth.csv", "clip,frame,present,x1,y1,x2,y2,tag,width,height", *lines)
    boxes = ["a,0,0,0,9,9,0.5", "a,0,0,0,9,9,0.4", "a,0,20,0,29,5,0.9", "a,0,30,30,39,39,0.1", "a,1,0,0,9,9,0.5"]
    table = csv_table(tmp_path / "boxes.csv", "clip,frame,x1,y1,x2,y2,score", *boxes)
    result = evaluate_predictions(table, truth)
    assert result.boxes.frames == 100  # the best score of each frame is right at 0.5
    found = result.instances
    assert (found.frames, found.boxes) == (1, 3)
    every, one = found.methods["boxes"].values()
    assert [every.recall[key] for key in ("0.3", "0.5", "0.7")] == pytest.approx([200 / 3, 200 / 3, 100 / 3])
    assert every.precision["mean"] == pytest.approx((50 + 50 + 25) / 3)
    assert (one.recall["0.7"], one.precision["0.5"]) == (0, 100)
    outcome = colocam("score", table, "--boxes", truth, "--size", "40")
    assert "several true boxes: 1, with 3 boxes" in outcome.out
    squeezed = evaluate_predictions(table, truth, size=80).instances.methods["boxes"]["all boxes"]
    assert squeezed.recall["0.3"] == pytest.approx(200 / 3)


def test_corloc_and_recall_use_the_same_true_boxes(tmp_path):
    """49 · 32/98 is 15.999999999999998 in float64 and 16 in float32: the same corner must be truncated everywhere."""
    columns = "clip,frame,present,x1,y1,x2,y2,tag,width,height"
    rows = ["a,0,1,49,49,50,50,cat,98,98", "a,0,1,80,80,90,90,cat,98,98"]
    truth = csv_table(tmp_path / "t.csv", columns, *rows)
    found = evaluate_predictions(box_table(tmp_path / "b.csv", {("a", 0): (49, 49, 49.1, 49.1)}), truth, size=32)
    assert found.boxes.average == 100
    assert found.instances.methods["boxes"]["all boxes"].recall["0.5"] == 50  # one of the two


def test_missing_frames_are_wrong_and_reported(colocam, tmp_path, truth):
    boxes = {key: box for key, box in BOXES.items() if key != ("a/1", 7)} | {("a/2", 0): None, ("x", 1): (1, 1, 2, 2)}
    table = box_table(tmp_path / "b.csv", boxes)
    found = evaluate_predictions(table, truth)
    assert found.boxes.classes["cat"] == pytest.approx(100 / 3)
    assert found.data.missing == 1  # a row without a box is an answer, too: there is none
    outcome = colocam("score", table, "--boxes", truth, "--json", tmp_path / "r.json")
    assert outcome.code == 0
    assert "MISSING: 1 of 4 frames have no prediction and count as wrong" in outcome.out
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == found.to_json()


def test_top_1_needs_class_and_box(tmp_path, truth):
    tags = dict(zip(BOXES, ["cat", "dog", "cat", "dog"], strict=True))
    boxes = BOXES | {("d/1", 3): (50, 50, 60, 60)}
    found = evaluate_predictions(box_table(tmp_path / "b.csv", boxes, tags), truth)
    assert found.boxes.top1.average == pytest.approx((200 / 3 + 0) / 2)
    assert found.boxes.average == pytest.approx(50)
    assert found.classification.accuracy == pytest.approx(75)
    assert found.classification.classes == pytest.approx({"cat": 200 / 3, "dog": 100})


@pytest.mark.parametrize(
    ("right", "as_it_is", "squeezed"),
    [
        (40, 100, 100),  # in frame pixels 21·21 of 42·21; at 224 (10, 20, 20, 60) in (10, 20, 30, 60): 11·41 of 21·41
        (38.5, 0, 0),  # 19.5 of 42 columns; 10.25 of 21
        (39.2, 0, 100),  # 20.2 of 42; 10.6 of 21
    ],
)
def test_boxes_at_the_published_size(tmp_path, right, as_it_is, squeezed):
    """At 224 a frame of 448×112 is squeezed and true corners are truncated: here that makes an IoU of .5 of less."""
    columns = "clip,frame,present,x1,y1,x2,y2,tag,width,height"
    truth = csv_table(tmp_path / "t.csv", columns, "a,0,1,20,10,61,30,cat,448,112", "b,0,1,0,0,9,9,dog,448,112")
    table = box_table(tmp_path / "b.csv", {("a", 0): (20, 10, right, 30), ("b", 0): (0, 0, 9, 9)})
    assert evaluate_predictions(table, truth).boxes.classes["cat"] == as_it_is
    assert evaluate_predictions(table, truth, size=224).boxes.classes["cat"] == squeezed


# maps


def map_of(box, shape=(40, 48), inside=200, outside=20):
    values = np.full(shape, outside, np.uint8)
    x1, y1, x2, y2 = box
    values[y1 : y2 + 1, x1 : x2 + 1] = inside
    return values


COLUMNS = "clip,frame,present,x1,y1,x2,y2,class,split,width,height"


@pytest.fixture
def map_truth(tmp_path):
    rows = [f"{tag}/{split},0,1,10,10,30,30,{tag},{split},48,40" for tag in ("cat", "dog") for split in ("val", "test")]
    return csv_table(tmp_path / "truth.csv", COLUMNS, *rows)


def test_maps_by_hand(tmp_path, map_truth):
    """The cat's box shows at any threshold above its ground, the dog's only below its hot spot."""
    dog = map_of((10, 10, 29, 29), inside=100)
    dog[14:18, 14:18] = 255
    folder = save_maps(tmp_path / "maps", {("cat/test", 0): map_of((10, 10, 29, 29)), ("dog/test", 0): dog})
    found = evaluate_predictions(folder, map_truth)
    assert list(found.maps) == ["tags-only", "oracle-global", "oracle-per-class"]  # no validation map
    assert found.maps["oracle-global"].average == 100
    threshold = found.maps["oracle-global"].threshold
    assert threshold * 200 >= 20
    assert 20 <= threshold * 255 < 100
    cat, dog_values = (np.array(m, float) * 255 // m.max() / 255 for m in (map_of((10, 10, 29, 29)), dog))
    assert found.maps["tags-only"].threshold == pytest.approx((cat.mean() + dog_values.mean()) / 2)
    assert found.data.threshold_maps == 2


def test_validation_maps_choose(tmp_path, map_truth):
    """Validation objects have a hot spot, so that only a low threshold is right; the test dog needs a high one."""
    low = map_of((10, 10, 29, 29), inside=100)
    low[14:18, 14:18] = 255
    high = map_of((2, 2, 45, 37), inside=150, outside=0)
    high[10:30, 10:30] = 255
    maps = {("cat/val", 0): low, ("dog/val", 0): low, ("cat/test", 0): low, ("dog/test", 0): high}
    found = evaluate_predictions(save_maps(tmp_path / "maps", maps), map_truth)
    assert found.maps["validation"].classes["cat"] == 100
    assert found.maps["validation"].classes["dog"] == 0
    assert found.maps["oracle-per-class"].average == 100
    assert found.data.validation_frames == found.data.threshold_maps == 2


@pytest.mark.parametrize("dog", [{("dog/test", 0): map_of((0, 0, 47, 39))[::2, ::2]}, {}], ids=["wrong", "missing"])
def test_maps_of_any_size_and_a_missing_one(tmp_path, map_truth, dog):
    large = cv2.resize(map_of((10, 10, 29, 29)), (96, 120), interpolation=cv2.INTER_NEAREST)
    found = evaluate_predictions(save_maps(tmp_path / "maps", {("cat/test", 0): large, **dog}), map_truth)
    assert found.maps["oracle-per-class"].classes == {"cat": 100, "dog": 0}
    assert found.data.missing == (not dog)


def test_pxap(colocam, tmp_path, map_truth):
    maps = {("cat/test", 0): map_of((10, 10, 29, 29)), ("dog/test", 0): map_of((10, 10, 29, 29))}
    folder = save_maps(tmp_path / "maps", maps)
    perfect = {key: (level > 100).astype(np.uint8) * 255 for key, level in maps.items()}
    masks = save_maps(tmp_path / "masks", perfect, ".png")
    assert evaluate_predictions(folder, map_truth, masks=masks).pxap == pytest.approx(100)
    # half of the object dark: its pixels are found together with the ground, at a precision of 800 in 3840
    maps["dog/test", 0] = np.full((40, 48), 20, np.uint8)
    save_maps(folder, maps)
    expected = 50 + 50 * 800 / 3840
    outcome = colocam("score", folder, "--boxes", map_truth, "--masks", masks)
    assert f"PxAP: {expected:.1f}" in outcome.out
    assert "per-class" in outcome.out
    # ignored pixels do not count
    for key, mask in perfect.items():
        perfect[key] = np.where(mask == 0, 128, mask).astype(np.uint8)
    masks = save_maps(tmp_path / "masks", perfect, ".png")
    assert evaluate_predictions(folder, map_truth, masks=masks).pxap == pytest.approx(100)
    shutil.rmtree(folder / "dog")
    assert evaluate_predictions(folder, map_truth, masks=masks).pxap == pytest.approx(100)
    (masks / "cat").rename(masks / "cow")
    (masks / "dog").rename(masks / "ewe")
    with pytest.raises(ColocamError, match="has no mask of an evaluated frame"):
        evaluate_predictions(folder, map_truth, masks=masks)


# what cannot be evaluated


def test_wrong_commands(colocam, tmp_path, truth, map_truth):
    table = box_table(tmp_path / "b.csv", BOXES)
    maps = save_maps(tmp_path / "maps", {("cat/test", 0): map_of((10, 10, 29, 29))})
    none = "has no prediction for a 'test' frame with a true box: check the clip names"
    assert none in colocam("score", table, "--boxes", map_truth).error
    assert "--split must be one of" in colocam("score", table, "--boxes", truth, "--split", "tset").error
    assert "masks are for predicted maps" in colocam("score", table, "--boxes", truth, "--masks", maps).error
    folder = ("score", maps, "--boxes", map_truth)
    assert "size is for predicted boxes" in colocam(*folder, "--size", 224).error
    assert "has no box for a 'train' frame" in colocam(*folder, "--split", "train").error
    assert "there is no such file" in colocam("score", "no.csv", "--boxes", truth).error
    assert colocam("evaluate", "--boxes", truth).code == 2  # no run
