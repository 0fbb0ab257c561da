import json
from dataclasses import replace

import pytest

from colocam.cams import classifier_cams
from colocam.evaluation.metrics import Average, CorLoc
from colocam.evaluation.result import Evaluation, method_title, ordered_methods
from colocam.report.evaluation_tables import Estimate, estimate, gain, protocols_of


@pytest.fixture
def evaluation(run):
    return Evaluation.from_json(json.loads((run / "evaluation.json").read_text()))


def test_order_of_methods():
    """As they come, since the source of the seeds is the first and the gain is counted from it; CoLo-CAM last."""
    assert ordered_methods(["clip-es", "colocam", "cam", "mine", "fcam"]) == [
        "clip-es",
        "cam",
        "mine",
        "fcam",
        "colocam",
    ]


def test_every_cam_has_a_title_of_its_own():
    titles = [method_title(method) for method in classifier_cams()]
    assert titles == ["CAM", "GradCAM", "GradCAM++", "Smooth-GradCAM++", "XGradCAM", "LayerCAM"]
    assert method_title("mine") == "mine"


def test_numbers_are_in_their_rows(evaluation):
    protocols = {protocol.name: protocol for protocol in protocols_of(evaluation)}
    assert list(protocols) == ["tags-only", "validation", "oracle-global", "oracle-per-class"]
    for name, protocol in protocols.items():
        assert [result.method for result in protocol.results] == ["layercam", "fcam", "colocam"]
        for result in protocol.results:
            cell = evaluation.methods[result.method][name]
            assert result.corloc == Estimate(cell.average, *cell.interval)
            assert result.frames.value == cell.frames
            assert result.top1 == Estimate(cell.top1.average, *cell.top1.interval)
        for tag, values, difference in protocol.classes:
            expected = [evaluation.methods[m][name].classes[tag] for m in ("layercam", "fcam", "colocam")]
            assert [value.value for value in values] == expected
            assert difference == pytest.approx(expected[-1] - expected[0])


def test_gain_is_last_minus_first(evaluation):
    (protocol, *_) = protocols_of(evaluation)
    ours, base = (evaluation.methods[method]["tags-only"].average for method in ("colocam", "layercam"))
    assert gain(protocol.results) == pytest.approx(ours - base)
    assert gain(protocol.results[:1]) is None


def test_missing_protocols_methods_and_numbers(evaluation):
    cells = {"colocam": {"tags-only": CorLoc(3.0, classes={"cat": None})}, "fcam": {"validation": CorLoc(4.0)}}
    protocols = protocols_of(replace(evaluation, methods=cells))
    assert [(p.name, [r.method for r in p.results]) for p in protocols] == [
        ("tags-only", ["colocam"]),
        ("validation", ["fcam"]),
    ]
    assert protocols[0].classes == (("cat", (Estimate(None),), None),)
    assert (str(protocols[0].results[0].top1), protocols[0].results[0].threshold) == ("–", "–")
    assert protocols_of(replace(evaluation, methods={})) == []


@pytest.mark.parametrize(
    ("threshold", "text"), [(0.4321, "0.43"), ({"a": 0.2, "b": 0.61}, "0.20–0.61"), ({}, "–"), (None, "–")]
)
def test_thresholds_as_text(evaluation, threshold, text):
    cells = {"colocam": {"tags-only": CorLoc(3.0, threshold=threshold)}}
    (protocol,) = protocols_of(replace(evaluation, methods=cells))
    assert protocol.results[0].threshold == text


def test_estimates_as_text():
    assert str(Estimate(61.27)) == "61.3"
    assert Estimate(61.27, 55.04, 66.96).spread == "55.0–67.0"
    assert Estimate(61.27).spread == ""
    assert estimate(Average(1.0)) == Estimate(1.0)
    assert estimate(Average(1.0, (0.5, 2.0))) == Estimate(1.0, 0.5, 2.0)
    assert estimate(None) == Estimate(None)
