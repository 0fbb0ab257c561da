"""The benches run the product's own code: what they time is checked, never how long it takes."""

import json

import pytest

from colocam.cams import classifier_cams
from colocam.config import load_config
from lab import training_step
from lab.bench import cam, train


@pytest.fixture(scope="module")
def config(tiny):
    return load_config(overrides=[*tiny, "localizer.batch=4", "localizer.frames=2", "localizer.losses.coloc=0.5"])


def test_a_step_is_measured_whole_and_in_parts(config, tmp_path, capsys):
    result = train.run("cpu", tmp_path / "train.json", steps=2, configs={"tiny": config})
    assert json.loads((tmp_path / "train.json").read_text()) == result
    (row,) = result["cases"]
    assert row["frames_per_s"] == pytest.approx(4 / (1e-3 * row["step_ms"]))
    assert set(row["stage1"]) == {"step_ms", "frames_per_s"}
    parts = {"read", "copy", "crop", "seeds", "encoder", "decoder", "partial CE", "CRF", "size", "color"}
    assert set(row["parts_ms"]) == parts
    out = capsys.readouterr().out
    assert all(part in out for part in parts)
    assert out.count("step_ms") == 2


def test_a_logistic_regression_has_features_and_a_fit(config, capsys, monkeypatch):
    frozen = config.model_copy(update={"classifier": config.classifier.model_copy(update={"fit": "logistic"})})
    monkeypatch.setattr(training_step, "CLIPS", 12)
    (row,) = train.run("cpu", None, steps=1, configs={"frozen": frozen})["cases"]
    assert row["stage1"] is None
    assert row["logistic"]["features"] == 12 * config.classifier.views
    assert row["logistic"]["frames_per_s"] > 0
    assert "stage 1, logistic regression" in capsys.readouterr().out


def test_every_cam_method_is_measured_beside_the_classifier(config, tmp_path, capsys):
    result = cam.run("cpu", tmp_path / "cam.json", config)
    assert list(result["batch_ms"]) == ["classifier alone", *classifier_cams()]
    for name, ms in result["batch_ms"].items():
        assert result["frames_per_s"][name] == pytest.approx(4000 / ms)
    assert json.loads((tmp_path / "cam.json").read_text()) == result
    assert "smooth-gradcam++" in capsys.readouterr().out
