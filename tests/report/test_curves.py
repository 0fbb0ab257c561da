import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from colocam.evaluation.result import read_metrics
from colocam.report.curves import training_curves


def train(phase="colocam", **values):
    return {"phase": phase, "event": "train", "epoch": 0, **values}


def val(phase="colocam", **values):
    return {"phase": phase, "event": "val", "epoch": 0, **values}


def test_metrics_are_read_and_damage_is_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    good = train(step=1, loss=2.0)
    path.write_text(
        json.dumps(good) + '\n{"phase": "colocam", "ev\n[1]\n"text"\n{"step": 3}\n\n' + json.dumps(val(step=1))
    )
    assert read_metrics(path) == [good, val(step=1)]


def test_every_phase_and_every_term_has_its_panel(finished):
    phases = training_curves(read_metrics(finished / "metrics.jsonl"))
    titles = {phase.title: [panel.title for panel in phase.panels] for phase in phases}
    assert list(titles) == ["Classifier", "F-CAM", "CoLo-CAM"]
    assert titles["Classifier"][1:3] == ["Cross-entropy of the classes", "Validation accuracy, %"]
    assert titles["CoLo-CAM"] == [
        "Total loss",
        "Seeds (partial cross-entropy)",
        "CRF",
        "Size constraint",
        "Color co-localization",
        "Validation CorLoc, %",
        "Score that chooses the epoch",
        "Threshold τ",
        "Learning rate",
    ]
    assert "Color co-localization" not in titles["F-CAM"]
    assert not [panel for phase in phases for panel in phase.panels if ": #" in panel.svg]  # colors of the page alone


def test_unknown_phases_and_terms_are_shown_by_their_names():
    phases = training_curves([train("later", step=1, loss=1.0, my_own=0.5), train("classifier", step=1, loss=1.0)])
    assert [phase.title for phase in phases] == ["Classifier", "later"]
    assert [panel.title for panel in phases[1].panels] == ["Total loss", "My own"]


def test_last_values_by_event_accuracy_in_percent_and_a_step_repeated_after_a_resume():
    records = [train(step=1, loss=3.0), train(step=2, loss=9.0), train(step=2, loss=-0.0002)]
    loss, accuracy = training_curves([*records, val(step=2, loss=1.5, accuracy=0.875)])[0].panels
    assert loss.last == (("train", "−2.0e−4"), ("val", "1.5"))
    assert accuracy.last == (("val", "87.5"),)
    assert 'aria-label="Total loss: training from 3 to −2.0e−4 over 2 points; validation from 1.5' in loss.svg


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "text", True, [1]])
def test_values_that_are_no_numbers_are_left_out(bad):
    (phase,) = training_curves([train(step=1, loss=bad, seeds=1.0), train(step=2, loss=2.0)])
    assert phase.panels[0].last == (("train", "2"),)
    assert training_curves([train(step=1, loss=bad)]) == []


def test_the_line_follows_the_numbers():
    values = [3.0, 1.0, 2.0, 0.5, 4.0]
    (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(values)])
    paths = ET.fromstring(phase.panels[0].svg).iter("{http://www.w3.org/2000/svg}path")
    (line,) = [path.get("d") for path in paths if "stroke: var(--curve-train)" in path.get("style", "")][:1]
    points = np.array(re.findall(r"-?[\d.]+", line), float).reshape(-1, 2)
    assert np.corrcoef(points[:, 0], range(5))[0, 1] == pytest.approx(1, abs=1e-4)
    assert np.corrcoef(points[:, 1], values)[0, 1] == pytest.approx(-1, abs=1e-4)


@pytest.mark.parametrize("values", [[0.0], [2.0], [2.0, 2.0, 2.0]])
def test_constant_and_single_values_are_drawn(values):
    (phase,) = training_curves([train(step=i, loss=value) for i, value in enumerate(values)])
    ET.fromstring(phase.panels[0].svg)


def test_hostile_names_are_escaped_and_no_formula():
    name = '"><script>alert(1)</script>$\\frac{'
    (phase,) = training_curves([train(step=1, **{name: 1.0})])
    ET.fromstring(phase.panels[0].svg)
    assert "<script" not in phase.panels[0].svg
