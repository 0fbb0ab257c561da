"""Evaluation of a run: its file, its numbers against a count by hand, and data that cannot be evaluated."""

import json
import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam.boxes import largest_boxes, to_8bit
from colocam.cams import extract
from colocam.config.options import Options
from colocam.data.batches import labeled_samples
from colocam.data.truth import read_truth
from colocam.errors import ColocamError
from colocam.evaluation.result import EvaluatedData, read_evaluation
from colocam.evaluation.run_evaluation import evaluate, maps_of, methods_of_run, open_evaluation_set
from colocam.maps.postprocess import postprocess, with_color_mean
from colocam.models.cam_formulas import min_max
from colocam.models.model_file import load_model
from colocam.report import write_report
from colocam.report.evaluation_tables import print_evaluations
from colocam.run import open_run
from tests.helpers.counting import inclusive_iou

METHODS = ["layercam", "fcam", "colocam"]
PROTOCOLS = ["tags-only", "validation", "oracle-global", "oracle-per-class"]
TAGS = ["bus", "cat", "owl"]


@pytest.fixture(scope="module")
def evaluated(trained, collection, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    shutil.copytree(trained, folder)
    return folder, evaluate(folder, collection.truth)


def only(collection, target, keep):
    """The table of true boxes with some of its rows."""
    header, *rows = collection.truth.read_text(encoding="utf-8").splitlines()
    target.write_text("\n".join([header, *(row for row in rows if keep(row.split(",")))]) + "\n", encoding="utf-8")
    return target


def frames_and_boxes(folder, truth, split, per_clip=None):
    """Frames of 32×32, boxes and classes of one split, from the cached frames of 36×36."""
    opened, read = open_run(folder), read_truth(truth)
    pictures, boxes, classes = [], [], []
    for clip in opened.clips(split):
        numbers = [number for number in range(5) if read.boxes(clip.clip.name, number)]
        if per_clip is not None and len(numbers) > per_clip:
            numbers = [numbers[int((i + 0.5) * len(numbers) / per_clip)] for i in range(per_clip)]
        for number in numbers:
            pictures.append(torch.from_numpy(clip.frames[number].copy()).permute(2, 0, 1))
            (box,) = read.boxes(clip.clip.name, number)
            boxes.append([int(side * 32 / whole) for side, whole in zip(box, (48, 40, 48, 40), strict=True)])
            classes.append(TAGS.index(clip.clip.tag))
    frames = F.interpolate(torch.stack(pictures).float(), size=(32, 32), mode="bilinear", antialias=True)
    return frames, boxes, np.array(classes)


def hits_by_hand(folder, method, truth, split, thresholds, per_clip=None):
    frames, boxes, classes = frames_and_boxes(folder, truth, split, per_clip)
    net = load_model(folder if method == "colocam" else folder / method).net
    with torch.no_grad():
        background, foreground = net(frames).map_logits.unbind(1)
        maps = torch.sigmoid(foreground - background).numpy()
    # Taken from the evaluation itself: a rounding of the network's may be another in another batch, and flip a level.
    opened = open_run(folder)
    samples = labeled_samples(opened.clips(split), TAGS, read_truth(truth), per_clip, present=True)
    levels = maps_of(opened, methods_of_run(opened, [])[method], samples)
    assert abs(levels - maps * 255).max() <= 1.01
    hits = np.zeros((len(frames), len(thresholds)), bool)
    for place, threshold in enumerate(thresholds):
        predicted, found = largest_boxes(levels, threshold)
        for i, box in enumerate(predicted):
            hits[i, place] = found[i] and inclusive_iou(box, boxes[i]) >= 0.5
    return hits, classes


def class_means(hits, classes):
    return np.stack([hits[classes == c].mean(0) for c in range(3)])


@pytest.mark.parametrize("method", ["fcam", "colocam"])
def test_numbers_against_a_count_by_hand(evaluated, collection, method):
    folder, result = evaluated
    assert list(result.methods[method]) == PROTOCOLS
    tags_only = result.methods[method]["tags-only"].threshold
    grid = np.append(np.arange(1000) / 1000, tags_only)
    hits, classes = hits_by_hand(folder, method, collection.truth, "test", grid)
    means = 100 * class_means(hits, classes)
    assert result.data.frames == len(hits) == 12
    per_class = result.methods[method]["oracle-per-class"]
    assert [per_class.classes[tag] for tag in TAGS] == pytest.approx(means.max(1))
    assert per_class.average == pytest.approx(means.max(1).mean())
    assert result.methods[method]["oracle-global"].frames == pytest.approx(100 * hits.mean(0).max())
    assert result.methods[method]["tags-only"].average == pytest.approx(means[:, -1].mean())
    chosen = result.methods[method]["validation"].threshold
    held_out, held_out_classes = hits_by_hand(folder, method, collection.truth, "val", [*grid, chosen], per_clip=3)
    scores = class_means(held_out, held_out_classes).mean(0)
    assert scores[-1] == pytest.approx(scores.max())
    (at,) = np.flatnonzero(np.isclose(grid, chosen, atol=1e-12))[:1]
    assert result.methods[method]["validation"].average == pytest.approx(means[:, at].mean())


def test_the_file_is_what_was_returned(evaluated):
    folder, result = evaluated
    written = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    assert written == result.to_json()
    assert list(written) == ["format", "methods", "classification", "data", "confusion", "objects"]
    assert list(written["methods"]) == METHODS
    assert read_evaluation(folder / "evaluation.json") == result
    assert result.data == EvaluatedData("test", frames=12, videos=3, clips=3, boxes=12, classes=3, empty_frames=3)


def test_classification_against_the_network(evaluated, collection):
    folder, result = evaluated
    frames, _, classes = frames_and_boxes(folder, collection.truth, "test")
    with torch.no_grad():
        right = load_model(folder).net(frames).class_logits.argmax(1).numpy() == classes
    assert result.classification.accuracy == pytest.approx(100 * right.mean())
    each = {tag: 100 * right[classes == c].mean() for c, tag in enumerate(TAGS)}
    assert result.classification.classes == pytest.approx(each)
    counts = {tag: sum(row.values()) for tag, row in result.confusion.items()}
    assert {tag: 100 * result.confusion[tag].get(tag, 0) / counts[tag] for tag in counts} == pytest.approx(each)
    assert sum(counts.values()) == result.data.frames


def test_several_cams_side_by_side(run, collection, evaluated):
    """The run's own comes first; each is judged by its own maps; nothing else changes."""
    result = evaluate(run, collection.truth, cams=("cam", "gradcam++", "layercam", "cam"))
    assert list(result.methods) == ["layercam", "cam", "gradcam++", "fcam", "colocam"]
    _, alone = evaluated
    assert {name: result.methods[name] for name in alone.methods} == alone.methods
    assert read_evaluation(run / "evaluation.json") == result
    with np.load(run / "cases.npz", allow_pickle=False) as cases:
        shown = [name.removeprefix("heatmaps__") for name in cases.files if name.startswith("heatmaps__")]
    assert shown == ["layercam", "cam", "gradcam++", "fcam", "colocam"]
    frames, boxes, classes = frames_and_boxes(run, collection.truth, "test")
    classifier = open_run(run, "cpu").classifier("cam")
    with torch.no_grad():
        maps = torch.einsum("bkhw,bk->bhw", classifier(frames).features[-1], classifier.head.weight[classes])
    maps -= maps.amin((1, 2), keepdim=True)
    maps /= maps.amax((1, 2), keepdim=True)
    maps = F.interpolate(maps[:, None], size=(32, 32), mode="bilinear")[:, 0].numpy()
    cell = result.methods["cam"]["tags-only"]
    predicted, found = largest_boxes((maps * 255).astype(np.uint8), cell.threshold)
    right = [bool(found[i]) and inclusive_iou(predicted[i], boxes[i]) >= 0.5 for i in range(len(frames))]
    assert cell.frames == pytest.approx(100 * np.mean(right))


def test_an_unknown_cam_is_refused_before_any_map(run, collection):
    with pytest.raises(ColocamError, match="no CAM method 'scorecam'"):
        evaluate(run, collection.truth, cams=("layercam", "scorecam"))
    assert not (run / "evaluation.json").exists()


def test_equal_logits_are_no_right_class(run, collection):
    """A classifier that says the same of every class is right about none; five of three classes hold every one."""
    classifier = open_run(run).classifier()
    with torch.no_grad():
        for parameter in (classifier.head.weight, classifier.head.bias):
            parameter.zero_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("colocam.run.Run.classifier", lambda *_: classifier)
        result = evaluate(run, collection.truth, cams=())
    assert result.classification.accuracy == 0
    for cell in result.methods["colocam"].values():
        assert cell.top1.average == 0
        assert cell.top5.average == cell.average


def test_tags_named_as_keys_of_the_result(run, evaluated):
    """ "average", "frames" and "interval" are tags like any other."""
    text = json.dumps(evaluated[1].to_json())
    for tag, name in zip(TAGS, ("average", "frames", "interval"), strict=True):
        text = text.replace(f'"{tag}"', f'"{name}"')
    (run / "evaluation.json").write_text(text, encoding="utf-8")
    result = read_evaluation(run / "evaluation.json")
    assert result.to_json() == json.loads(text)
    for cell in result.methods["colocam"].values():
        assert cell.average == pytest.approx(
            np.mean([cell.classes[name] for name in ("average", "frames", "interval")])
        )
    print_evaluations([result])
    page = write_report(run).read_text(encoding="utf-8")
    assert all(f'<th scope="row">{tag}</th>' in page for tag in ("average", "frames", "interval"))


def test_the_same_again(evaluated, collection):
    folder, result = evaluated
    assert evaluate(folder, collection.truth) == result


def test_cases_for_the_gallery(evaluated, collection):
    """Frames, boxes and overlaps of each example are those of its clip and frame."""
    folder, result = evaluated
    clips = {clip.clip.name: clip for clip in open_run(folder).clips("test")}
    truth = read_truth(collection.truth)
    with np.load(folder / "cases.npz", allow_pickle=False) as cases:
        meta = json.loads(str(cases["meta"]))
        assert cases["images"].shape == (len(meta), 32, 32, 3)
        for i, case in enumerate(meta):
            frame = torch.from_numpy(clips[case["clip"]].frames[case["frame"]].copy()).permute(2, 0, 1)[None].float()
            expected = F.interpolate(frame, size=(32, 32), mode="bilinear", antialias=True)[0].permute(1, 2, 0)
            assert abs(cases["images"][i] - expected.numpy()).max() <= 1
            true = np.reshape(truth.boxes(case["clip"], case["frame"]), (-1, 4)) * [32 / 48, 32 / 40, 32 / 48, 32 / 40]
            stored = cases["truth"][i]
            np.testing.assert_allclose(stored[np.isfinite(stored).all(1)], true, rtol=1e-5)
            for method in METHODS:
                assert cases[f"heatmaps__{method}"][i].shape == (32, 32)
                box, overlap = cases[f"boxes__{method}"][i], cases[f"iou__{method}"][i]
                wanted = inclusive_iou(box, true[0].astype(int)) if len(true) else np.nan
                np.testing.assert_allclose(overlap, wanted, rtol=1e-5)
    assert {case["group"] for case in meta} >= {"best", "empty"}
    assert {case["tag"] for case in meta} == set(TAGS)
    assert all(0 < case["probability"] <= 1 for case in meta)
    assert result.data.empty_frames == 3


def test_other_splits(run, collection):
    result = evaluate(run, collection.truth, split="val")
    assert result.data.split == "val"
    assert result.data.frames == 12
    assert evaluate(run, collection.truth, split="train").data.videos == 6


def test_frames_with_several_boxes(run, collection, tmp_path, evaluated, capsys):
    """A second box in frame 2 of each test video; only those frames count."""
    assert evaluated[1].instances is None
    table = tmp_path / "two.csv"
    more = "".join(f"{tag}/test-0,2,1,1,1,9,8\n" for tag in TAGS)
    table.write_text(collection.truth.read_text(encoding="utf-8") + more, encoding="utf-8")
    result = evaluate(run, table)
    found = result.instances
    assert (found.frames, found.boxes) == (3, 6)
    assert list(found.methods) == METHODS
    for method, ways in found.methods.items():
        assert list(ways) == ["tags-only", "oracle-global", "one box"]
        assert ways["tags-only"].threshold == ways["one box"].threshold
        assert ways["one box"].threshold == pytest.approx(result.methods[method]["tags-only"].threshold)
        assert ways["one box"].recall["mean"] <= 50
    print_evaluations([result])
    assert "several true boxes: 3, with 6 boxes" in capsys.readouterr().out


def test_classes_and_splits_without_boxes(run, collection, tmp_path, capsys):
    """A class is left out of the average; without validation boxes there is no validation protocol."""
    table = only(collection, tmp_path / "two.csv", lambda row: "/test-" in row[0] and not row[0].startswith("owl"))
    result = evaluate(run, table)
    for method in METHODS:
        assert list(result.methods[method]) == ["tags-only", "oracle-global", "oracle-per-class"]
        for cell in result.methods[method].values():
            assert cell.classes["owl"] is None
            assert cell.average == pytest.approx((cell.classes["bus"] + cell.classes["cat"]) / 2)
    assert result.classification.classes["owl"] is None
    print_evaluations([result])
    shown = capsys.readouterr().out
    assert "–" in shown
    assert "validation" not in shown


@pytest.mark.parametrize("keep", [lambda row: row[2] == "0", lambda row: "/train-" in row[0], None])
def test_boxes_of_other_frames(run, collection, tmp_path, keep):
    table = only(collection, tmp_path / "other.csv", keep or (lambda _: False))
    if keep is None:
        table.write_text("clip,frame,present,x1,y1,x2,y2\nsomewhere/else,0,1,1,1,9,9\n", encoding="utf-8")
    with pytest.raises(ColocamError, match=r"other\.csv has no box for a 'test' frame of this run: check the clip"):
        evaluate(run, table)
    assert not (run / "evaluation.json").exists()


def test_a_run_whose_data_name_no_test_split(run, collection):
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    data["clips"] = [clip for clip in data["clips"] if clip["split"] != "test"]
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ColocamError, match="has no 'test' video: choose the split train or val"):
        evaluate(run, collection.truth)


def test_videos_that_are_gone_are_no_reason_to_stop(run, collection, tmp_path, capsys):
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    for clip in data["clips"]:
        if clip["name"] == "owl/test-0":
            clip |= {"path": str(tmp_path / "gone.mp4"), "digest": "0" * 64}  # neither the video nor its frames
    (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
    result = evaluate(run, collection.truth)
    assert result.data.videos == 2
    assert result.methods["colocam"]["tags-only"].classes["owl"] is None
    err = capsys.readouterr().err
    assert "warning: skipped owl/test-0" in err
    assert "gone.mp4: there is no such file" in err


def check_tags_only(cell, evaluated, maps):
    """Compare a result with a count of the right boxes of maps at its threshold."""
    means = evaluated.frames.class_means(evaluated.hits(maps, np.array([cell.threshold])))[:, 0]
    assert cell.average == pytest.approx(100 * means.mean())


@pytest.mark.parametrize("color_mean", ["frame", "clip"])
def test_maps_of_all_methods_may_be_completed_by_color(run, collection, color_mean):
    """Against the maps of each method, completed here and counted."""
    found = evaluate(run, collection.truth, options=Options(color_mean=color_mean))
    opened = open_run(run)
    evaluated = open_evaluation_set(opened, collection.truth).evaluated
    for name, mapper in methods_of_run(opened, ["layercam"]).items():
        assert mapper.color_mean == "off"
        ((frames, classes),) = evaluated.samples.batches(32, opened.device, batch=len(evaluated.samples))
        clips = evaluated.samples.indices.clips.unique(return_inverse=True)[1]
        ids = clips if color_mean == "clip" else torch.arange(len(frames))  # a clip is one shot and one window
        with torch.inference_mode():
            maps = to_8bit(with_color_mean(frames, mapper.draw(frames, classes)[0], ids)).numpy()
        check_tags_only(found.methods[name]["tags-only"], evaluated, maps)


def test_maps_of_decoders_may_be_focused_on_the_tag(run, collection):
    """Against decoders' maps and LayerCAMs of the tags, finished here and counted; CAMs stay as they are."""
    plain, found = evaluate(run, collection.truth), evaluate(run, collection.truth, options=Options(focus=True))
    assert found.methods["layercam"] == plain.methods["layercam"]
    opened = open_run(run)
    evaluated = open_evaluation_set(opened, collection.truth).evaluated
    method = opened.config.methods[0]
    draw, as_is = (methods_of_run(opened, [], focus=focus)[method].draw for focus in (True, False))
    classifier = load_model(run).net.classifier  # with kernels rounded as they are stored
    parts = []
    for frames, classes in evaluated.samples.batches(32, opened.device):
        with torch.inference_mode():
            cams = extract("layercam", classifier, frames, classes)
            torch.testing.assert_close(min_max(draw(frames, classes)[1]), min_max(cams), atol=1e-4, rtol=1e-4)
            parts.append(to_8bit(postprocess(frames, as_is(frames, classes)[0], None, cams)).numpy())
    check_tags_only(found.methods[method]["tags-only"], evaluated, np.concatenate(parts))


def test_maps_as_asked_on_the_command_line(colocam, run, collection):
    command = ("evaluate", run, "--boxes", collection.truth)
    for asked in (["--focus"], ["--no-focus", "--color-mean", "clip"]):
        assert colocam(*command, *asked).code == 0
    assert "--color-mean video: valid are off, frame, clip" in colocam(*command, "--color-mean", "video").error
