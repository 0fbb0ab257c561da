"""The table in the terminal: every method, every class, intervals for one run and spreads for several."""

import numpy as np
import pytest

from colocam.cams import classifier_cams
from colocam.evaluation.metrics import Accuracy
from colocam.evaluation.result import EvaluatedData, Evaluation, PredictionEvaluation, ordered_methods
from colocam.report.evaluation_tables import print_evaluations, print_predictions
from tests.helpers.evaluations import evaluation


@pytest.fixture
def shown(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def show(*evaluations):
        print_evaluations([Evaluation.from_json(one) for one in evaluations])
        return capsys.readouterr().out

    return show


def row(text, *beginning):
    (line,) = [line for line in text.splitlines() if all(word in line for word in beginning)]
    return [cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]]


def test_one_run_has_intervals(shown):
    text = shown(evaluation())
    assert "300 frames of 18 test videos (95 % bootstrap interval over videos)" in text
    assert row(text, "LayerCAM") == ["", "LayerCAM", "CoLo-CAM"]
    assert row(text, "oracle-per-class") == ["oracle-per-class", "30.0 [26, 34]", "60.0 [56, 64]"]
    assert row(text, "oracle-global") == ["oracle-global", "31.0 [27, 35]", "61.0 [57, 65]"]
    assert row(text, "validation") == ["validation", "32.0 [28, 36]", "62.0 [58, 66]"]
    assert row(text, "tags-only ") == ["tags-only", "33.0 [29, 37]", "63.0 [59, 67]"]
    assert row(text, "top-1") == ["tags-only, top-1", "28.0 [24, 32]", "58.0 [54, 62]"]
    assert row(text, "dog") == ["tags-only, dog", "34.0", "64.0"]
    assert "classification accuracy: 80.0 [70, 90]" in text


def test_several_runs_have_mean_and_spread(shown):
    text = shown(evaluation(0), evaluation(3), evaluation(9))
    deviation = np.std([0, 3, 9], ddof=1)
    assert "mean ± std of 3 runs" in text
    assert row(text, "oracle-per-class")[2] == f"{60 + 4:.1f} ± {deviation:.1f}"
    assert row(text, "tags-only, cat") == ["tags-only, cat", "37.0", "67.0"]
    assert f"classification accuracy: 84.0 ± {deviation:.1f}" in text


def test_without_validation_boxes_that_row_is_left_out(shown):
    assert "validation" not in shown(evaluation(validation=False))


def test_a_class_without_frames_has_a_dash_and_does_not_spoil_the_mean(shown):
    one, other = evaluation(), evaluation(2)
    for method in ("layercam", "colocam"):
        one["methods"][method]["tags-only"]["classes"]["dog"] = None
    assert row(shown(one), "dog") == ["tags-only, dog", "–", "–"]
    assert row(shown(one, other), "dog") == ["tags-only, dog", "36.0", "66.0"]


def test_many_methods_stand_in_several_tables(shown, monkeypatch):
    many = evaluation()
    for method in classifier_cams():
        many["methods"][method] = many["methods"]["layercam"]
    text = shown(many)
    titles = [line for line in text.splitlines() if line.startswith("┃")]
    assert len(titles) == 3
    assert max(len(line) for line in text.splitlines()[1:]) <= 80
    assert text.count("30.0 [26, 34]") == 6  # whole cells, each once
    monkeypatch.setenv("COLUMNS", "200")
    cams = ["LayerCAM", "CAM", "GradCAM", "GradCAM++", "Smooth-GradCAM++", "XGradCAM"]
    assert row(shown(many), "XGradCAM") == ["", *cams, "CoLo-CAM"]


def test_runs_of_different_cams_are_compared_in_what_they_share(shown):
    other = evaluation(2)
    other["methods"]["gradcam"] = other["methods"].pop("layercam")
    text = shown(evaluation(), other)
    assert row(text, "CoLo-CAM") == ["", "CoLo-CAM"]
    assert row(text, "oracle-per-class")[1].startswith("61.0 ±")


def test_tags_are_text_not_markup(shown):
    text = shown(evaluation(tags=("[red]fox", "[/]", "猫 x")))
    assert [row(text, tag)[0] for tag in ("fox", "[/]", "猫")] == [
        "tags-only, [red]fox",
        "tags-only, [/]",
        "tags-only, 猫 x",
    ]


@pytest.mark.parametrize("kind", ["maps", "boxes"])
def test_predictions_of_others(capsys, monkeypatch, kind):
    monkeypatch.setenv("COLUMNS", "80")
    cells = Evaluation.from_json(evaluation()).methods["colocam"]
    result = PredictionEvaluation(
        data=EvaluatedData("test", frames=12, videos=4, missing=2),
        max_box_acc={"0.3": 70.0, "0.5": 55.5, "0.7": 20.0, "mean": 48.5},
        boxes=cells["tags-only"] if kind == "boxes" else None,
        maps=cells if kind == "maps" else None,
        classification=Accuracy(81.25) if kind == "boxes" else None,
    )
    print_predictions(result)
    text = capsys.readouterr().out
    assert "…" not in text
    assert max(map(len, text.splitlines()[1:])) <= 80
    assert "63.0 [59, 67]" in row(text, "CorLoc", "│")
    assert row(text, "over frames", "│")[-1] == "61.5"
    assert "64.0" in row(text, "│ dog")
    assert len(row(text, "│ cat")) == (5 if kind == "maps" else 2)
    assert "70.0 (0.3), 55.5 (0.5), 20.0 (0.7), 48.5 (mean)" in text
    assert "MISSING: 2 of 12 frames" in text
    assert ("top-1" in text) == ("classification accuracy: 81.2" in text) == (kind == "boxes")


def test_frames_with_several_objects(shown):
    shares = {"0.3": 80.0, "0.5": 60.0, "0.7": 25.0, "mean": 55.0}
    ways = {"blobs": {"recall": shares, "precision": {**shares, "mean": 44.0}}}
    ways["one box"] = {"recall": {**shares, "mean": 30.0}, "precision": None}
    first = evaluation() | {"instances": {"frames": 7, "boxes": 19, "methods": {"colocam": ways}}}
    text = shown(first)
    assert "several true boxes: 7, with 19 boxes" in text
    assert row(text, "CoLo-CAM", "blobs") == ["CoLo-CAM", "blobs", "80.0", "60.0", "25.0", "55.0", "44.0"]
    assert row(text, "one box")[-2:] == ["30.0", "–"]
    better = {"blobs": {"recall": {**shares, "mean": 65.0}, "precision": None}, "one box": ways["one box"]}
    second = evaluation() | {"instances": {"frames": 7, "boxes": 19, "methods": {"colocam": better}}}
    assert row(shown(first, second), "CoLo-CAM", "blobs")[-2:] == ["60.0", "44.0"]
    assert "several true boxes" not in shown(first, evaluation())


def test_order_of_methods():
    """As they come, since the source of the seeds is the first and the gain is counted from it; CoLo-CAM last."""
    names = ["clip-es", "colocam", "cam", "mine", "fcam"]
    assert ordered_methods(names) == ["clip-es", "cam", "mine", "fcam", "colocam"]
