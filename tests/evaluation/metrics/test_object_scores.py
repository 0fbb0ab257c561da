"""Several boxes, presence and tracks against pycocotools, motmetrics and counting by hand."""

import contextlib
import io

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from colocam.evaluation.metrics.object_scores import (
    average_precision_50,
    detection_scores,
    presence_scores,
    track_scores,
)
from tests.helpers.counting import inclusive_iou


def some_frames(seed, count=12):
    """Frames with 0–4 true boxes, most of them predicted with an error, some with a wrong box besides."""
    generator = np.random.default_rng(seed)
    predicted, scores, true = [], [], []
    for _ in range(count):
        corner = generator.integers(0, 30, (generator.integers(0, 5), 2))
        there = np.concatenate([corner, corner + generator.integers(8, 25, corner.shape)], axis=1)
        near = there[generator.random(len(there)) < 0.8] + generator.integers(-3, 4, 4)
        wrong = np.array([[40, 40, 60, 60]] * int(generator.integers(0, 3))).reshape(-1, 4)
        predicted.append(np.concatenate([near, wrong]).astype(float))
        scores.append(generator.random(len(predicted[-1])))
        true.append(there)
    return predicted, scores, true


def coco_ap50(predicted, scores, true):
    def sides(box):  # COCO's boxes end before their right edge; ours contain it
        x1, y1, x2, y2 = map(float, box)
        return [x1, y1, x2 - x1 + 1, y2 - y1 + 1]

    with contextlib.redirect_stdout(io.StringIO()):
        truth, places = COCO(), [(i, box) for i, boxes in enumerate(true) for box in boxes]
        truth.dataset = {
            "info": {},
            "images": [{"id": i} for i in range(len(true))],
            "categories": [{"id": 1}],
            "annotations": [
                {"id": n + 1, "image_id": i, "category_id": 1, "bbox": sides(box), "area": 1.0, "iscrowd": 0}
                for n, (i, box) in enumerate(places)
            ],
        }
        truth.createIndex()
        found = [
            {"image_id": i, "category_id": 1, "bbox": sides(box), "score": float(score)}
            for i, (boxes, values) in enumerate(zip(predicted, scores, strict=True))
            for box, score in zip(boxes, values, strict=True)
        ]
        coco = COCOeval(truth, truth.loadRes(found), "bbox")
        coco.params.iouThrs = np.array([0.5])
        coco.evaluate()
        coco.accumulate()
    return 100 * coco.eval["precision"][0, :, 0, 0, 2].mean()


@pytest.mark.parametrize("seed", range(12))
def test_ap50_is_that_of_coco(seed):
    frames = some_frames(seed)
    expected = coco_ap50(*frames)
    assert 0 < expected < 100
    assert average_precision_50(*frames) == pytest.approx(expected, abs=1e-9)


def test_the_ap50_of_classes_is_the_mean_of_those_that_have_boxes():
    predicted, scores, true = some_frames(3)
    classes = ["cow", "dog", "cat"] * 4
    true[2::3] = [np.zeros((0, 4))] * 4  # no cat anywhere
    found = detection_scores(predicted, scores, true, classes=classes)
    own = [coco_ap50(predicted[start::3], scores[start::3], true[start::3]) for start in (0, 1)]
    assert found.class_ap50 == pytest.approx(np.mean(own), abs=1e-9)
    assert found.ap50 == detection_scores(predicted, scores, true).ap50
    assert detection_scores(predicted, scores, true).class_ap50 is None


def test_recall_and_precision_count_every_frame_or_those_with_several():
    box, other = [0, 0, 9, 9], [20, 20, 29, 29]
    true = [np.array([box]), np.array([box, other]), np.zeros((0, 4))]
    predicted = [np.array([box]), np.array([box, [50, 50, 59, 59]]), np.array([other])]
    scores = [np.array([0.9]), np.array([0.8, 0.3]), np.array([0.7])]
    every = detection_scores(predicted, scores, true)
    assert (every.frames, every.boxes) == (3, 3)
    assert (every.recall, every.precision) == (pytest.approx(200 / 3), pytest.approx(50))
    # two of three boxes come first: precision 1 up to a recall of 2/3, which 67 of COCO's 101 recalls do not exceed
    assert every.ap50 == pytest.approx(100 * 67 / 101)
    several = detection_scores(predicted, scores, true, several=True)
    assert (several.frames, several.boxes, several.recall, several.precision) == (1, 2, 50, 50)
    assert detection_scores(predicted[:1], scores[:1], true[:1], several=True) is None
    empty = detection_scores(predicted[2:], scores[2:], true[2:])
    assert (empty.ap50, empty.recall, empty.precision) == (None, None, 0)
    silent = detection_scores([np.zeros((0, 4))], [np.zeros(0)], true[:1])
    assert (silent.ap50, silent.recall, silent.precision) == (0, 0, None)


def test_false_boxes_at_the_threshold_that_keeps_the_right_ones():
    presence = np.concatenate([np.linspace(0.405, 0.6, 40), [0.1, 0.2, 0.42, 0.7]])
    present = np.arange(44) < 40
    right = present & (np.arange(44) % 2 == 0)  # 20 right boxes: 19 of them must stay
    boxed = np.ones(44, bool)
    boxed[-4] = False
    scores = presence_scores(presence, present, right, boxed)
    assert (scores.frames, scores.empty_frames) == (44, 4)
    assert scores.threshold == pytest.approx(presence[2])
    assert scores.false_boxes == 2 / 4  # 0.42 and 0.7
    assert scores.all_false_boxes == 3 / 4
    below = [sum(presence[:40] > value) + sum(presence[:40] == value) / 2 for value in presence[40:]]
    assert scores.roc_auc == pytest.approx(sum(below) / 160)
    # from the lowest presence up: empty, empty, three others, empty, …, the last empty frame is the 44th
    at = 1 + np.flatnonzero(np.isin(np.argsort(presence), [40, 41, 42, 43]))
    assert scores.empty_ap == pytest.approx(np.mean([(i + 1) / place for i, place in enumerate(at)]))
    assert presence_scores(presence[:40], present[:40], right[:40], boxed[:40]) is None
    nothing_right = presence_scores(presence, present, np.zeros(44, bool), boxed)
    assert (nothing_right.threshold, nothing_right.false_boxes) == (None, None)


def some_tracks(seed):
    """Three objects over twelve frames, followed with gaps, changes of the name and false tracks."""
    generator = np.random.default_rng(seed)
    true, found = {}, {}
    names = {i: i for i in range(3)}
    for frame in range(12):
        true[frame], found[frame] = [], []
        for i in range(3):
            x = 40 * i + 2 * frame
            box = (x, 10, x + 19, 29)
            if generator.random() < 0.9:
                true[frame].append((100 + i, box))
            if generator.random() < 0.15:
                names[i] += 10
            if generator.random() < 0.8:
                moved = tuple(side + int(generator.integers(-2, 3)) for side in box)
                found[frame].append((names[i], moved))
        if generator.random() < 0.2:
            found[frame].append((99, (0, 80, 9, 99)))
    return true, found


def test_idf1_is_that_of_motmetrics():
    mm = pytest.importorskip("motmetrics")
    shots = [some_tracks(seed) for seed in range(6)]
    accumulators = []
    for true, found in shots:
        accumulator = mm.MOTAccumulator(auto_id=True)
        for frame, them in true.items():
            overlaps = np.array([[inclusive_iou(a, b) for _, b in found[frame]] for _, a in them])
            distances = np.where(overlaps >= 0.5, 1 - overlaps, np.nan).reshape(len(them), len(found[frame]))
            accumulator.update([name for name, _ in them], [name for name, _ in found[frame]], distances)
        accumulators.append(accumulator)
    host = mm.metrics.create()
    summary = host.compute_many(accumulators, metrics=["idf1", "idr", "idp"], generate_overall=True)
    for i, shot in enumerate(shots):
        scores, expected = track_scores([shot]), summary.iloc[i]
        assert 30 < scores.idf1 < 100
        assert scores.idf1 == pytest.approx(100 * expected["idf1"])
        assert scores.recall == pytest.approx(100 * expected["idr"])
        assert scores.precision == pytest.approx(100 * expected["idp"])
    assert track_scores(shots).idf1 == pytest.approx(100 * summary.loc["OVERALL"]["idf1"])


def test_tracks_without_boxes():
    box = (0, 0, 9, 9)
    assert track_scores([]) is None
    assert track_scores([({0: []}, {0: [(1, box)]})]) is None
    missed = track_scores([({0: [("a", box)]}, {})])
    assert (missed.objects, missed.tracks, missed.idf1, missed.precision) == (1, 0, 0, None)
    # the same name in another shot is another object
    both = track_scores([({0: [("a", box)]}, {0: [(1, box)]}), ({0: [("a", box)]}, {0: [(2, box)]})])
    assert (both.objects, both.tracks, both.idf1) == (2, 2, 100)
