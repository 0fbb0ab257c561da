"""Examples are chosen by rule, and their file says what the samples, maps and boxes say."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from colocam.data.batches import spread_samples
from colocam.data.frame_cache import ROW, CachedClip
from colocam.evaluation.cases import EMPTY_CASES, choose_cases
from colocam.evaluation.run_evaluation import Labelled, MethodResult, save_cases
from colocam.types import Clip

NAN = float("nan")
TAGS = ("cat", "dog")


def chosen(overlaps, classes, clips=None):
    clips = clips if clips is not None else range(len(overlaps))
    return choose_cases(np.array(overlaps, float), np.array(classes), np.array(list(clips)))


def test_best_typical_and_worst_of_each_class_in_the_order_of_the_classes():
    found = chosen([0.1, 0.9, 0.5, 0.3, 0.8, 0.2], [0, 0, 0, 1, 1, 1])
    assert found == [(1, "best"), (4, "best"), (2, "typical"), (3, "typical"), (0, "worst"), (5, "worst")]


def test_a_frame_is_shown_once_under_its_best_group():
    assert chosen([0.4], [0]) == [(0, "best")]
    assert chosen([0.4, 0.2], [3, 3]) == [(0, "best"), (1, "worst")]
    frames = [frame for frame, _ in chosen([0.4, 0.2, 0.9], [0, 0, 1])]
    assert len(frames) == len(set(frames)) == 3


def test_empty_frames_come_from_different_clips_and_are_few():
    overlaps = [0.5] + [NAN] * 12
    found = chosen(overlaps, [0] * 13, [0, 7, 5, 5, 6, 7, 8, 9, 9, 4, 3, 2, 1])
    empty = [frame for frame, group in found if group == "empty"]
    assert empty == [1, 2, 4, 6]
    assert len(empty) == EMPTY_CASES
    assert found[0] == (0, "best")


def test_there_may_be_nothing_to_show_of_a_class():
    assert chosen([NAN, 0.3], [0, 1]) == [(1, "best"), (0, "empty")]
    assert chosen([], []) == []


SIZE = 16


@pytest.fixture
def saved(tmp_path):
    """Six frames of 16×16: squares that the second method finds better; the last frame is empty of the object."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (6, SIZE, SIZE, 3)).astype(np.uint8)
    clips = []
    for name, tag, part in (("猫/a", "cat", slice(0, 3)), ("b", "dog", slice(3, 6))):
        file = tmp_path / f"{len(clips)}.rgb"
        pictures[part].tofile(file)
        rows = np.array([(10 + i, 0.1 * i, 64, 64) for i in range(3)], ROW)
        clips.append(CachedClip(Clip(name, tag, "test", tmp_path / "x", name), file, SIZE, rows))
    samples = spread_samples(clips, TAGS, 10)
    true = [np.array([[4, 4, 10, 10]], np.float32)] * 5 + [np.zeros((0, 4), np.float32)]
    true[1] = np.array([[4, 4, 10, 10], [0, 0, 3, 3]], np.float32)
    good, poor = np.zeros((2, 6, SIZE, SIZE), np.uint8)
    for i in range(6):
        good[i, 4 : 10 + i, 4 : 10 + i] = 200
        poor[i, 0:5, 0:5] = 90
    poor[2] = 0
    predicted = [(TAGS[i // 4], 0.5 + i / 20) for i in range(6)]
    maps = {"layercam": poor, "colocam": good}
    path = tmp_path / "run" / "cases.npz"
    evaluation_set = SimpleNamespace(evaluated=Labelled(samples, true, TAGS), predicted=predicted)
    results = {name: MethodResult(maps[name], {"layercam": 0.5}.get(name, 0.3), "largest", {}) for name in maps}
    save_cases(path, evaluation_set, results)
    with np.load(path, allow_pickle=False) as file:
        return dict(file), pictures, maps


def test_the_file_holds_what_was_measured(saved):
    arrays, pictures, maps = saved
    meta = json.loads(str(arrays["meta"]))
    # the square grows with the frame: the first frame of a class is best, the last one that has the object is worst
    assert [(case["clip"], case["frame"], case["group"]) for case in meta] == [
        ("猫/a", 10, "best"),
        ("b", 10, "best"),
        ("猫/a", 11, "typical"),
        ("猫/a", 12, "worst"),
        ("b", 11, "worst"),
        ("b", 12, "empty"),
    ]
    rows = [(0 if case["tag"] == "cat" else 3) + case["frame"] - 10 for case in meta]
    assert (arrays["images"] == pictures[rows]).all()
    for method, levels in maps.items():
        assert (arrays[f"heatmaps__{method}"] == levels[rows]).all()
    for row, case in zip(rows, meta, strict=True):
        assert case["predicted"] == TAGS[row // 4]
        assert case["probability"] == 0.5 + row / 20


def test_boxes_and_overlaps(saved):
    arrays, _, _ = saved
    meta = json.loads(str(arrays["meta"]))
    for i, case in enumerate(meta):
        row = (0 if case["tag"] == "cat" else 3) + case["frame"] - 10
        assert arrays["boxes__colocam"][i].tolist() == [4, 4, min(10 + row, 15), min(10 + row, 15)]
        if row == 5:
            assert np.isnan(arrays["iou__colocam"][i])
            assert np.isnan(arrays["truth"][i]).all()
            continue
        side = min(10 + row, 15) - 4 + 1  # both ends of a box count as pixels
        assert arrays["iou__colocam"][i] == pytest.approx(49 / side**2)
        assert arrays["truth"][i, 0].tolist() == [4, 4, 10, 10]
        assert np.isnan(arrays["truth"][i, 1]).all() == (row != 1)
        if row == 2:
            assert np.isnan(arrays["boxes__layercam"][i]).all()
            assert arrays["iou__layercam"][i] == 0
        else:
            assert arrays["boxes__layercam"][i].tolist() == [0, 0, 5, 5]
    assert arrays["truth"].shape == (6, 2, 4)
