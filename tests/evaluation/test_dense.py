"""``colocam evaluate RUN --dense MANIFEST``: videos and images, numbers counted from ``localize``'s tables."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.config.options import Options
from colocam.data.truth import read_truth
from colocam.errors import ColocamError
from colocam.evaluation.dense import evaluate_dense
from colocam.evaluation.result import read_dense
from colocam.inference.localize import localize_file
from colocam.labels.table import read_table
from colocam.report import write_report
from colocam.video.fence import decode
from tests.helpers.counting import inclusive_iou


@pytest.mark.parametrize("smooth", ["offline", "none"])
def test_videos_give_what_localize_writes(run, index, collection, tmp_path, colocam, smooth):
    outcome = colocam("evaluate", run, "--dense", index, "--split", "test", "--smooth", smooth, "--device", "cpu")
    assert outcome.code == 0, outcome.err
    result = json.loads((run / "dense.json").read_text(encoding="utf-8"))
    assert [shot["name"] for shot in result["shots"]] == ["bus/test-0", "cat/test-0", "owl/test-0"]
    truth, hits, named = read_truth(collection.truth), [], []
    for shot in result["shots"]:
        for key, tag in (("without_tag", None), ("with_tag", shot["tag"])):
            video = collection.videos / f"{shot['name']}.mp4"
            written = localize_file(
                run, video, tmp_path / key, annotate=False, options=Options("cpu", smooth=smooth, tag=tag)
            )
            rows = read_table(written.table)
            overlaps = [inclusive_iou(rows.box[i], truth.boxes(shot["name"], i)[0]) for i in range(1, 5)]
            changes = [1 - inclusive_iou(rows.box[i], rows.box[i + 1]) for i in range(4)]
            assert shot[key]["corloc"] == pytest.approx(100 * sum(value >= 0.5 for value in overlaps) / 4)
            assert shot[key]["mean_iou"] == pytest.approx(sum(overlaps) / 4, abs=1e-3)
            assert shot[key]["jitter"] == pytest.approx(sum(changes) / 4, abs=1e-3)
            if tag is None:
                hits += [value >= 0.5 for value in overlaps]
                named += [rows.tag[i] == shot["tag"] for i in range(1, 5)]
                assert shot[key]["switches"] == sum(rows.tag[i] != rows.tag[i + 1] for i in range(4))
        # The square of 16 × 16 pixels, inclusive 17 × 17, moves by one pixel per frame; it is absent in the first.
        assert shot["true_jitter"] == pytest.approx(1 - 16 / 18)
        assert (shot["frames"], shot["boxed_frames"]) == (5, 4)
    assert result["over_frames"]["without_tag"]["corloc"] == pytest.approx(100 * sum(hits) / 12)
    assert result["over_frames"]["without_tag"]["class_right"] == pytest.approx(100 * sum(named) / 12)
    assert "cat/test-0" in outcome.out
    assert f"smoothing {smooth}" in outcome.out


def frames_table(collection, folder, tags):
    """The test videos as images with a table of one row per box, as the stored real frames have it."""
    truth = read_truth(collection.truth)
    lines = ["video,shot,frame,class,split,width,height,x1,y1,x2,y2"]
    for video, tag in tags.items():
        for frame in decode(collection.videos / f"{video}.mp4"):
            image = f"frames/{video}/{frame.index}.png"
            (folder / image).parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / image), frame.image[..., ::-1])
            (box,) = truth.boxes(video, frame.index) or [("", "", "", "")]
            lines.append(",".join(map(str, (video, video, image, tag, "val", 48, 40, *box))))
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "manifest.csv"


def scores_of(row):
    """What does not depend on the time that it took."""
    return [
        (scores.corloc, scores.mean_iou, scores.jitter, scores.class_right, scores.switches)
        for scores in (row.without_tag, row.with_tag)
    ]


def test_images_give_the_same_as_their_video(run, collection, index, tmp_path):
    videos = {"cat/test-0": "cat", "owl/test-0": "owl"}
    images = evaluate_dense(run, frames_table(collection, tmp_path / "images", videos), options=Options("cpu"))
    stored = read_dense(run / "dense.json")
    assert stored == images
    whole = evaluate_dense(run, index, shots=[*videos], options=Options("cpu"))
    assert [row.name for row in images.shots] == [row.name for row in whole.shots] == [*videos]
    assert [scores_of(row) for row in images.rows] == [scores_of(row) for row in whole.rows]
    assert [row.true_jitter for row in images.rows] == [row.true_jitter for row in whole.rows]


def test_an_onnx_file_gives_what_its_run_gives(onnx_file, trained, index, tmp_path, colocam, monkeypatch):
    """The results go to a folder here, or to the one that is named: the file may lie in an installed package."""
    installed, here = tmp_path / "installed", tmp_path / "here"
    installed.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    model = Path(shutil.copy(onnx_file, installed / "pets.onnx"))
    outcome = colocam("evaluate", model, "--dense", index, "--split", "test")
    assert outcome.code == 0, outcome.err
    assert [path.name for path in installed.iterdir()] == ["pets.onnx"]
    (tmp_path / "file").touch()
    refused = colocam("evaluate", model, "--dense", index, "--out", tmp_path / "file" / "results").error
    assert refused == (
        f"error: cannot write {tmp_path / 'file' / 'results'}: there is a file where a folder is needed: "
        "choose another output folder"
    )
    found = read_dense(here / "pets-evaluation" / "dense.json")
    run = shutil.copytree(trained, tmp_path / "run")
    wanted = evaluate_dense(run, index, split="test", options=Options("cpu"))
    assert found.over_frames.with_tag.corloc == wanted.over_frames.with_tag.corloc
    assert found.over_frames.with_tag.mean_iou == pytest.approx(wanted.over_frames.with_tag.mean_iou, abs=0.01)


def test_several_runs_give_mean_and_standard_deviation(run, index, tmp_path, colocam):
    other = shutil.copytree(run, tmp_path / "other")
    card = json.loads((other / "model.json").read_text(encoding="utf-8"))
    (other / "model.json").write_text(json.dumps(card | {"threshold": 0.9}), encoding="utf-8")
    out = tmp_path / "results"
    outcome = colocam("evaluate", run, other, "--dense", index, "--split", "test", "--smooth", "none", "-o", out)
    assert outcome.code == 0, outcome.err
    assert not (run / "dense.json").exists()
    means = [read_dense(out / one.name / "dense.json").over_frames.with_tag.mean_iou for one in (run, other)]
    assert means[0] != means[1]
    spread = f"{50 * sum(means):.1f} ± {100 * abs(means[0] - means[1]) / 2**0.5:.1f}"  # std of two values
    (line,) = [line for line in outcome.out.splitlines() if "IoU in percent with tag" in line]
    assert line.count(spread) >= 1


def test_shots_of_unknown_tags_are_left_out_and_named(run, collection, tmp_path, colocam):
    table = frames_table(collection, tmp_path / "images", {"cat/test-0": "cat", "owl/test-0": "flamingo"})
    outcome = colocam("evaluate", run, "--dense", table, "--device", "cpu")
    assert outcome.code == 0, outcome.err
    assert "1 of 2 shots have a tag that the model does not know: flamingo: owl/test-0" in outcome.err
    assert "flamingo: owl/test-0" in outcome.out
    result = read_dense(run / "dense.json")
    assert result.unknown == {"flamingo": ("owl/test-0",)}
    assert [row.name for row in result.shots] == ["cat/test-0"]
    only_unknown = frames_table(collection, tmp_path / "others", {"owl/test-0": "flamingo"})
    error = colocam("evaluate", run, "--dense", only_unknown, "--device", "cpu").error
    assert "no shot with true boxes has a tag of the model: it knows bus, cat, owl" in error


def test_without_a_split_all_shots_outside_train_and_in_the_report(run, index):
    result = evaluate_dense(run, index / "manifest.csv", options=Options("cpu", smooth="none"))
    assert [row.name for row in result.shots] == [
        f"{tag}/{split}-0" for tag in ("bus", "cat", "owl") for split in ("test", "val")
    ]
    page = write_report(run).read_text(encoding="utf-8")
    section = page[page.index('<section id="dense"') :].partition("</section>")[0]
    assert section.count('<th scope="row">') == 8
    # three shots in three images; for presence three empty and three other frames in two images
    assert section.count("<img") == 3 * 3 + 6 * 2
    (run / "dense.json").unlink()
    assert 'id="dense"' not in write_report(run).read_text(encoding="utf-8")


def test_the_worst_frames_are_those_with_the_lowest_iou(run, index, collection, tmp_path):
    evaluate_dense(run, index, options=Options("cpu"), split="val")
    with np.load(run / "dense.npz") as archive:
        meta, stored = json.loads(str(archive["meta"])), archive["iou__without the tag"]
    assert {case["clip"] for case in meta} == {"bus/val-0", "cat/val-0", "owl/val-0"}
    for case, overlap in zip(meta, stored, strict=True):
        video = collection.videos / f"{case['clip']}.mp4"
        rows = read_table(localize_file(run, video, tmp_path / "out", annotate=False, options=Options("cpu")).table)
        boxes = {i: read_truth(collection.truth).boxes(case["clip"], i) for i in range(1, 5)}
        ious = {i: inclusive_iou(rows.box[i], box) for i, (box,) in boxes.items()}
        assert ious[case["frame"]] == pytest.approx(min(ious.values()), abs=1e-3)
        assert overlap == pytest.approx(min(ious.values()), abs=1e-3)


def test_what_cannot_be_evaluated_gives_one_line(run, index, collection, tmp_path, colocam):
    def error(*arguments):
        return colocam("evaluate", run, "--device", "cpu", *arguments).error

    assert "give --boxes TABLE, or --dense MANIFEST" in error()
    assert "nowhere.csv" in error("--dense", tmp_path / "nowhere.csv")
    assert "smooth" in error("--dense", index, "--smooth", "ofline")
    table = frames_table(collection, tmp_path / "images", {"cat/test-0": "cat"})
    whole = frames_table(collection, tmp_path / "whole", {"cat/test-0": "cat"})
    (tmp_path / "images" / "frames" / "cat/test-0" / "3.png").unlink()
    assert "3.png" in error("--dense", table)
    assert "no shot of train has a true box" in error("--dense", whole, "--split", "train")
    (index / "truth.csv").unlink()
    assert "has no true boxes" in error("--dense", index)
    assert not (run / "dense.json").exists()


def test_a_damaged_result_is_refused(run, index, colocam):
    evaluate_dense(run, index, options=Options("cpu", smooth="none"), split="test")
    (run / "dense.json").write_text("{", encoding="utf-8")
    assert "dense.json is not valid JSON" in colocam("report", run).error
    (run / "dense.json").write_text('{"format": 1}', encoding="utf-8")
    assert "evaluate the run again" in colocam("report", run).error
    for options in (Options(tag="cat"), Options(instances=True)):
        with pytest.raises(ColocamError, match="neither tag nor instances"):
            evaluate_dense(run, index, options=options)
