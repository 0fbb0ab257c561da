"""Evaluation with a segmenter: results of their own, beside those of tags alone, counted by hand."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from colocam.config.options import Options
from colocam.data.truth import read_truth
from colocam.errors import ColocamError
from colocam.evaluation.result import read_evaluation
from colocam.evaluation.run_evaluation import evaluate, maps_of, methods_of_run, open_evaluation_set, refined_boxes
from colocam.inference.localize import localize_file
from colocam.labels.table import read_table
from colocam.report import write_report
from colocam.run import open_run
from colocam.segment import load_segmenter
from colocam.segment.refine import refine
from colocam.video.fence import decode
from tests.helpers.counting import inclusive_iou

TAGS = ["bus", "cat", "owl"]


@pytest.fixture(scope="module")
def evaluated(trained, collection, box_segmenter_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("refined") / "run"
    shutil.copytree(trained, folder)
    return folder, evaluate(folder, collection.truth, options=Options("cpu", refine=box_segmenter_files))


def test_boxes_of_labeled_frames_against_a_count_by_hand(evaluated, collection, box_segmenter_files):
    """Frames are read from the videos at their own size, 48×40, and the labeled frames of a clip are a shot."""
    folder, result = evaluated
    opened = open_run(folder, "cpu")
    chosen = open_evaluation_set(opened, collection.truth)
    levels = maps_of(opened, methods_of_run(opened, [])["colocam"], chosen.evaluated.samples)
    segmenter, truth = load_segmenter(box_segmenter_files), read_truth(collection.truth)
    hits = {}
    for clip, tag in enumerate(TAGS):
        images = [frame.image for frame in decode(collection.videos / tag / "test-0.mp4")]
        own = slice(5 * clip, 5 * clip + 5)
        for frame, one in enumerate(refine(segmenter, images, levels[own])):
            for true in truth.boxes(f"{tag}/test-0", frame):
                box = np.minimum(one.box / (48, 40, 48, 40) * 32, 31)
                scaled = [int(side * 32 / whole) for side, whole in zip(true, (48, 40, 48, 40), strict=True)]
                hits.setdefault(tag, []).append(inclusive_iou(box, scaled) >= 0.5)
    found = result.refined["boxes"]["colocam"]
    assert {tag: 100 * np.mean(one) for tag, one in hits.items()} == pytest.approx(dict(found.classes))
    assert found.average == pytest.approx(100 * np.mean([np.mean(one) for one in hits.values()]))
    assert found.threshold is None
    boxes = refined_boxes(segmenter, chosen.evaluated.samples, levels)
    assert boxes.shape == (15, 4)
    assert boxes.max() <= 31


def test_results_of_tags_alone_stay_as_they_are(evaluated, trained, collection, tmp_path):
    folder, result = evaluated
    plain = evaluate(shutil.copytree(trained, tmp_path / "plain"), collection.truth, options=Options("cpu"))
    assert plain.refined is None
    assert plain.methods == result.methods
    assert list(result.refined) == ["boxes"]
    assert list(result.refined["boxes"]) == ["colocam", "fcam"]
    assert read_evaluation(folder / "evaluation.json") == result


def test_the_command_prints_and_reports_both(trained, collection, index, tmp_path, colocam, box_segmenter_files):
    run = shutil.copytree(trained, tmp_path / "run")
    outcome = colocam(
        *("evaluate", run, "--boxes", collection.truth, "--dense", index, "--split", "test", "--device", "cpu"),
        *("--refine", box_segmenter_files),
    )
    assert outcome.code == 0, outcome.err
    assert "CoLo-CAM + boxes" in outcome.out
    assert outcome.out.count("15 frames of 3 whole shots") == 2
    assert "refined by boxes: 15 frames" in outcome.out
    plain, refined = (json.loads((run / f"{name}.json").read_text()) for name in ("dense", "dense-refined"))
    assert "refined" not in plain
    assert refined["refined"] == "boxes"
    video = collection.videos / "cat" / "test-0.mp4"
    options = Options("cpu", refine=box_segmenter_files)
    rows = read_table(localize_file(run, video, tmp_path / "tables", annotate=False, options=options).table)
    truth = read_truth(collection.truth)
    overlaps = [inclusive_iou(rows.box[at], truth.boxes("cat/test-0", at)[0]) for at in range(1, 5)]
    shot = next(one for one in refined["shots"] if one["name"] == "cat/test-0")
    assert shot["without_tag"]["mean_iou"] == pytest.approx(np.mean(overlaps), abs=1e-3)
    html = write_report(run).read_text(encoding="utf-8")
    assert "CoLo-CAM + boxes" in html
    assert "Whole shots, as users run it, refined by boxes" in html
    assert html.count("Whole shots, as users run it<") == 1


def test_frames_that_are_gone(trained, collection, box_segmenter_files):
    """The frame cache has frames of a video that is now shorter."""
    samples = open_evaluation_set(open_run(trained, "cpu"), collection.truth).evaluated.samples
    first, *others = samples.clips
    shorter = replace(samples, clips=[replace(first, clip=replace(first.clip, end=0.1)), *others])
    with pytest.raises(ColocamError, match="2 frames of bus/test-0 can no longer be read"):
        refined_boxes(load_segmenter(box_segmenter_files), shorter, np.full((15, 32, 32), 200, np.uint8))
