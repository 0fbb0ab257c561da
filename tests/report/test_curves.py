import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from colocam.evaluation.result import read_metrics
from colocam.report import curves
from colocam.report.curves import training_curves

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def phases(finished):
    return training_curves(read_metrics(finished / "metrics.jsonl"))


def train(phase="colocam", **values):
    return {"phase": phase, "event": "train", "epoch": 0, **values}


def val(phase="colocam", **values):
    return {"phase": phase, "event": "val", "epoch": 0, **values}


def line_points(svg, variable):
    """Vertices of the drawn lines of one colour, in the picture's coordinates (y down)."""
    lines = []
    for path in ET.fromstring(svg).iter(f"{NAMESPACE}path"):
        if f"stroke: var({variable})" in path.get("style", "") and path.get("d", "").count("L") > 1:
            numbers = re.findall(r"-?[\d.]+", path.get("d"))
            lines.append(np.array(numbers, float).reshape(-1, 2))
    return lines


def test_metrics_are_read_and_damage_is_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    good = train(step=1, loss=2.0)
    path.write_text(
        json.dumps(good) + '\n{"phase": "colocam", "ev\n[1]\n"text"\n{"step": 3}\n\n' + json.dumps(val(step=1))
    )
    assert read_metrics(path) == [good, val(step=1)]


def test_every_phase_and_every_term_has_its_panel(phases):
    titles = {phase.title: [panel.title for panel in phase.panels] for phase in phases}
    assert list(titles) == ["Classifier", "F-CAM", "CoLo-CAM"]
    assert titles["Classifier"][:2] == ["Total loss", "Validation accuracy, %"]
    assert titles["CoLo-CAM"] == [
        "Total loss",
        "Seeds (partial cross-entropy)",
        "CRF",
        "Size constraint",
        "Colour co-localisation",
        "Validation CorLoc, %",
        "Selection criterion",
        "Threshold τ",
        "Learning rate",
    ]
    assert "Colour co-localisation" not in titles["F-CAM"]


def test_unknown_phases_and_terms_are_shown_by_their_names():
    phases = training_curves([train("later", step=1, loss=1.0, presence=0.5), train("classifier", step=1, loss=1.0)])
    assert [phase.title for phase in phases] == ["Classifier", "later"]
    assert [panel.title for panel in phases[1].panels] == ["Total loss", "Presence"]


def test_titles_are_words():
    stored = Path(__file__).parents[1] / "stored" / "version-0.1.0" / "run" / "metrics.jsonl"
    titles = {panel.title for phase in training_curves(read_metrics(stored)) for panel in phase.panels}
    assert {"Score that chooses the epoch", "CorLoc of the CAMs, %", "Cross-entropy of the classes"} <= titles
    assert not [title for title in titles if "_" in title or title[0].islower()]


def test_validation_is_dashed_beside_its_colour():
    records = [make(step=step, loss=1.0 / step) for step in (1, 2, 3) for make in (train, val)]
    svg = training_curves(records)[0].panels[0].svg
    styles = [path.get("style", "") for path in ET.fromstring(svg).iter(f"{NAMESPACE}path")]
    lines = {name: [style for style in styles if f"stroke: var(--curve-{name})" in style] for name in ("train", "val")}
    assert any("stroke-dasharray" in style for style in lines["val"])
    assert lines["train"]
    assert not any("stroke-dasharray" in style for style in lines["train"])


def test_last_values_by_event_and_accuracy_in_percent():
    records = [train(step=1, loss=3.0), train(step=2, loss=-0.0002), val(step=2, loss=1.5, accuracy=0.875)]
    loss, accuracy = training_curves(records)[0].panels
    assert loss.last == (("train", "−2.0e−4"), ("val", "1.5"))
    assert accuracy.last == (("val", "87.5"),)
    assert 'aria-label="Total loss: training from 3 to −2.0e−4 over 2 points; validation from 1.5' in loss.svg


def test_a_step_repeated_after_a_resume_counts_once_and_the_later_wins():
    records = [train(step=1, loss=5.0), train(step=2, loss=9.0), train(step=2, loss=4.0), train(step=3, loss=3.0)]
    (curve,) = curves._curves(records, "loss")
    assert curve.x.tolist() == [1, 2, 3]
    assert curve.y.tolist() == [5, 4, 3]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "text", True, [1]])
def test_values_that_are_no_numbers_are_left_out(bad):
    (phase,) = training_curves([train(step=1, loss=bad, seeds=1.0), train(step=2, loss=2.0)])
    assert phase.panels[0].last == (("train", "2"),)
    assert training_curves([train(step=1, loss=bad)]) == []


def test_the_line_follows_the_numbers():
    values = [3.0, 1.0, 2.0, 0.5, 4.0]
    (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(values)])
    (points,) = line_points(phase.panels[0].svg, "--curve-train")
    assert np.corrcoef(points[:, 0], range(5))[0, 1] == pytest.approx(1, abs=1e-4)
    assert np.corrcoef(points[:, 1], values)[0, 1] == pytest.approx(-1, abs=1e-4)


def test_long_noisy_curves_are_thinned_and_carry_their_mean():
    random = np.random.default_rng(0)
    records = [train(step=i, loss=1 + random.standard_normal()) for i in range(5000)]
    (phase,) = training_curves(records)
    raw, mean = line_points(phase.panels[0].svg, "--curve-train")
    assert len(raw) <= 240
    assert mean[:, 1].std() < 0.5 * raw[:, 1].std()
    assert len(phase.panels[0].svg) < 20_000


def test_levels_of_a_learning_rate_stay_sharp():
    records = [train(step=i, lr=0.1 * 0.5 ** (i // 50)) for i in range(200)]
    (phase,) = training_curves(records)
    (points,) = line_points(phase.panels[0].svg, "--curve-train")
    assert len(set(points[:, 1].round(2))) == 4


def test_constant_and_single_values_are_drawn():
    for values in ([0.0], [2.0], [2.0, 2.0, 2.0]):
        (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(values)])
        ET.fromstring(phase.panels[0].svg)


def test_drawings_share_a_page(phases):
    """All plots are in one page, so equal names must mean equal things."""
    drawings = [panel.svg for phase in phases for panel in phase.panels]
    assert len(drawings) > 15
    named = {(one.get("id"), ET.tostring(one)) for svg in drawings for one in ET.fromstring(svg).iterfind(".//*[@id]")}
    assert len(named) == len({name for name, _ in named})
    assert not [svg for svg in drawings if re.search(r"url\(|href=\"[^#]|<style", svg)]


def test_drawings_take_the_colours_of_the_page(phases):
    for phase in phases:
        for panel in phase.panels:
            assert not re.search(r": #", panel.svg)
            assert {"var(--line)", "var(--soft)"} <= set(re.findall(r"var\(--\w+\)", panel.svg))


def test_labels_of_small_and_large_numbers_are_short_and_differ():
    for values in ([1e-4, 5e-4], [1000.1, 1000.3], [-3e5, 2e5], [0.5, 0.5001]):
        (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(values)])
        texts = [text.text for text in ET.fromstring(phase.panels[0].svg).iter(f"{NAMESPACE}text")]
        assert len(set(texts[2:])) == len(texts[2:])  # after the steps 0 and 1
        assert max(map(len, texts)) <= 7


def test_a_spike_ends_at_the_frame():
    y = np.random.default_rng(2).uniform(0, 1, 300)
    y[150] = 1e6
    (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(y)])
    for points in line_points(phase.panels[0].svg, "--curve-train"):
        assert points[:, 1].min() > 0
        assert points[:, 1].max() < 151.2


def test_hostile_names_are_escaped_and_no_formula():
    name = '"><script>alert(1)</script>$\\frac{'
    (phase,) = training_curves([train(step=1, **{name: 1.0})])
    ET.fromstring(phase.panels[0].svg)
    assert "<script" not in phase.panels[0].svg


def test_equal_records_give_equal_drawings(run):
    records = read_metrics(run / "metrics.jsonl")
    assert training_curves(records) == training_curves(records)
