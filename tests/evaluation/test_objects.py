"""All boxes, presence and tracks of ``colocam evaluate``, counted again from the tables of ``colocam localize``."""

import csv
import json

import numpy as np
import pytest

from colocam.config.options import Options
from colocam.data.truth import read_truth
from colocam.evaluation.metrics.object_scores import average_precision_50
from colocam.evaluation.result import read_dense, read_evaluation
from colocam.inference.localize import localize_file
from colocam.labels.table import read_table
from colocam.report import write_report
from tests.helpers.counting import inclusive_iou

SHOTS = [f"{tag}/test-0" for tag in ("bus", "cat", "owl")]
CORNERS = ("x1", "y1", "x2", "y2")


@pytest.fixture
def named_index(index):
    """The index with a name for each box, and a second box that stays in the corner of each frame with the object."""
    with (index / "truth.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (index / "truth.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "id"])
        writer.writeheader()
        for row in rows:
            present = row["present"] == "1"
            writer.writerow(row | {"id": "square" if present else ""})
            if present:
                writer.writerow(row | dict(zip(CORNERS, (0, 0, 6, 6), strict=True)) | {"id": "corner"})
    return index


def localized(run, collection, tmp_path, shot, **options):
    """Rows of the table that ``localize`` writes for a shot, with the tag."""
    out = tmp_path / "localized" / "-".join([*shot.split("/"), *map(str, options.values())])
    video = collection.videos / f"{shot}.mp4"
    tag = shot.partition("/")[0]
    return read_table(localize_file(run, video, out, annotate=False, options=Options("cpu", tag=tag, **options)).table)


def check_presence(found, run, collection, tmp_path):
    """Compare with what the tables of one box a frame say; the object is absent in the first frame alone."""
    truth, there, empty, right = read_truth(collection.truth), [], [], []
    for shot in SHOTS:
        rows = localized(run, collection, tmp_path, shot)
        for frame, presence, box in zip(rows.frame.tolist(), rows.presence, rows.box, strict=True):
            boxes = truth.boxes(shot, frame)
            (there if boxes else empty).append(presence)
            if boxes and inclusive_iou(box, boxes[0]) >= 0.5:
                right.append(presence)
    assert (found.frames, found.empty_frames) == (len(there) + len(empty), len(empty)) == (15, 3)
    pairs = [(a > b) + (a == b) / 2 for a in there for b in empty]
    # tables round presence: a pair closer than that may be ordered in another way there
    close = sum(abs(a - b) < 2e-3 for a in there for b in empty)
    assert found.roc_auc == pytest.approx(np.mean(pairs), abs=close / len(pairs) + 1e-9)
    assert 0 < found.empty_ap <= 1
    assert (found.threshold is None) == (not right)
    assert found.all_false_boxes == 1  # the tiny model always gives a box


def test_boxes_presence_and_tracks_of_whole_shots(run, named_index, collection, tmp_path, colocam):
    """Labeled frames give the same."""
    asked = ("--boxes", named_index / "truth.csv", "--dense", named_index, "--split", "test")
    outcome = colocam("evaluate", run, *asked, "--device", "cpu")
    assert outcome.code == 0, outcome.err
    objects = read_dense(run / "dense.json").objects
    assert read_evaluation(run / "evaluation.json").objects == objects
    check_presence(objects.presence, run, collection, tmp_path)
    truth = read_truth(named_index / "truth.csv")
    predicted, scores, true = [], [], []
    for shot in SHOTS:
        rows = localized(run, collection, tmp_path, shot, instances=True)
        for frame in range(5):
            here = (rows.frame == frame) & ~np.isnan(rows.box[:, 0])
            predicted.append(rows.box[here])
            scores.append(rows.score[here])
            true.append(np.array(truth.boxes(shot, frame)).reshape(-1, 4))
    assert (objects.every_frame.frames, objects.every_frame.boxes) == (15, 24)
    assert (objects.several.frames, objects.several.boxes) == (12, 24)
    assert objects.every_frame.ap50 == pytest.approx(average_precision_50(predicted, scores, true), abs=0.5)
    hits = sum(
        any(inclusive_iou(box, one) >= 0.5 for one in found)
        for found, boxes in zip(predicted, true, strict=True)
        for box in boxes
    )
    given = sum(map(len, predicted))
    assert objects.every_frame.recall == pytest.approx(100 * hits / 24)
    assert objects.every_frame.precision == pytest.approx(100 * hits / given)
    assert objects.tracks.objects == 6
    assert 0 < objects.tracks.idf1 <= 100 * 2 * hits / (24 + given) + 1e-9
    assert "all boxes: 24 in 15 frames: AP50" in outcome.out
    assert outcome.out.count("presence: 3 of 15 frames are empty: ROC AUC") == 2
    assert "tracks: " in outcome.out
    page = write_report(run).read_text(encoding="utf-8")
    assert '<section id="objects"' in page
    section = page[page.index('<section id="dense"') :].partition("</section>")[0]
    assert "Most boxes wrong" in section
    assert "Presence most wrong" in section
    assert "IDF1" in section


def test_the_worst_frames_are_stored_with_all_their_boxes(run, named_index, colocam):
    assert colocam("evaluate", run, "--dense", named_index, "--split", "test", "--device", "cpu").code == 0
    with np.load(run / "dense-objects.npz") as archive:
        meta, truth = json.loads(str(archive["meta"])), archive["truth"]
        boxes = archive["boxes__with the tag"]
    assert {case["group"] for case in meta} == {"several", "presence"}
    for case, true, found in zip(meta, truth, boxes, strict=True):
        count, given = (int(np.isfinite(one).all(-1).sum()) for one in (true, found))
        if case["group"] == "several":
            hits, there, false = (int(word) for word in case["verdict"].replace(",", "").split() if word.isdigit())
            assert (there, hits + false) == (count, given)
        else:
            assert case["verdict"].endswith("with the object" if count else "without the object")
            assert case["right"] == ((float(case["verdict"].split()[1].rstrip(",")) > 0.5) == bool(count))


def test_a_truth_with_one_box_in_every_frame_gives_nothing_more(run, index, colocam):
    lines = (index / "truth.csv").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.split(",")[2] != "0"]
    (index / "truth.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    outcome = colocam("evaluate", run, "--dense", index, "--split", "test", "--device", "cpu")
    assert outcome.code == 0, outcome.err
    result = read_dense(run / "dense.json")
    assert result.objects is None
    assert "ROC AUC" not in outcome.out
    assert not (run / "dense-objects.npz").exists()


def test_without_smoothing_there_are_no_tracks(run, named_index, colocam):
    arguments = ("--dense", named_index, "--split", "test", "--smooth", "none", "--device", "cpu")
    assert colocam("evaluate", run, *arguments).code == 0
    result = read_dense(run / "dense.json")
    assert result.objects.several is not None
    assert result.objects.tracks is None
