import json

import pytest

from colocam.cams import METHODS
from colocam.report import evaluation_rows as tables
from colocam.report.evaluation_rows import (
    Estimate,
    estimate,
    gain,
    method_title,
    methods_of,
    ordered_methods,
    protocols_of,
)


@pytest.fixture
def evaluation(run):
    return json.loads((run / "evaluation.json").read_text())


def test_methods_are_told_from_other_keys(evaluation):
    assert methods_of(evaluation) == ["layercam", "fcam", "colocam"]
    assert methods_of({"data": {"frames": 3}, "colocam": {"validation": {}}, "note": "text"}) == ["colocam"]


def test_order_of_methods():
    assert ordered_methods(["colocam", "zoom", "tcam", "gradcam", "layercam", "fcam", "cam", "attention"]) == [
        "gradcam",  # CAMs as they come: the source of the seeds is the first, and what the gain is counted from
        "layercam",
        "cam",
        "fcam",
        "tcam",
        "attention",
        "zoom",
        "colocam",
    ]


def test_every_cam_has_a_title_of_its_own():
    titles = [method_title(method) for method in METHODS]
    assert titles == ["CAM", "GradCAM", "GradCAM++", "Smooth-GradCAM++", "XGradCAM", "LayerCAM"]
    assert ordered_methods(["colocam", *METHODS]) == [*METHODS, "colocam"]


def test_numbers_stand_where_they_belong(evaluation):
    protocols = {protocol.name: protocol for protocol in protocols_of(evaluation)}
    assert list(protocols) == ["tags-only", "validation", "oracle-global", "oracle-per-class"]
    for name, protocol in protocols.items():
        assert [result.method for result in protocol.results] == ["layercam", "fcam", "colocam"]
        for result in protocol.results:
            cell = evaluation[result.method][name]
            assert result.corloc == Estimate(cell["average"], *cell["interval"])
            assert result.frames.value == cell["frames"]
            assert result.top1 == Estimate(cell["top1"]["average"], *cell["top1"]["interval"])
        for tag, values, difference in protocol.classes:
            assert [value.value for value in values] == [
                evaluation[m][name][tag] for m in ("layercam", "fcam", "colocam")
            ]
            assert difference == pytest.approx(evaluation["colocam"][name][tag] - evaluation["layercam"][name][tag])


def test_gain_is_last_minus_first(evaluation):
    (protocol, *_) = protocols_of(evaluation)
    expected = evaluation["colocam"]["tags-only"]["average"] - evaluation["layercam"]["tags-only"]["average"]
    assert gain(protocol.results) == pytest.approx(expected)
    assert gain(protocol.results[:1]) is None
    holes = protocols_of({"layercam": {"validation": {"average": None}}, "colocam": {"validation": {"average": 3.0}}})
    assert gain(holes[0].results) is None


def test_missing_protocols_methods_and_numbers():
    protocols = protocols_of(
        {"colocam": {"tags-only": {"average": float("nan"), "cat": None}}, "fcam": {"validation": {}}}
    )
    assert [(p.name, [r.method for r in p.results]) for p in protocols] == [
        ("tags-only", ["colocam"]),
        ("validation", ["fcam"]),
    ]
    assert str(protocols[0].results[0].corloc) == "–"
    assert protocols[0].classes == (("cat", (Estimate(None),), None),)
    assert protocols_of({}) == []


@pytest.mark.parametrize(
    ("threshold", "text"),
    [(0.4321, "0.43"), ({"a": 0.2, "b": 0.61}, "0.20–0.61"), ({}, "–"), (None, "–"), ("often", "–")],
)
def test_thresholds_as_text(threshold, text):
    assert tables._threshold(threshold) == text


def test_estimates_as_text():
    assert str(Estimate(61.27)) == "61.3"
    assert Estimate(61.27, 55.04, 66.96).spread == "55.0–67.0"
    assert Estimate(61.27).spread == ""
    assert estimate({"average": 1.0, "interval": None}) == Estimate(1.0)
    assert estimate({"average": 1, "interval": [0.5, 2]}) == Estimate(1.0, 0.5, 2.0)
    assert estimate(7) == Estimate(7.0)
    assert estimate(None) == Estimate(None)
    assert estimate(True) == Estimate(None)
