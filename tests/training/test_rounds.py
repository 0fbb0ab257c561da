"""Rounds of training on a decoder's own boxes: the labels, their place in the step, interruption, the command."""

import json
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from colocam import evaluate
from colocam.config import read_config
from colocam.errors import ColocamError, InterruptedRunError
from colocam.models import localizer_net
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training import keep_start, validation
from colocam.training import own_labels as labels_module
from colocam.training.own_labels import FOREGROUND, UNKNOWN
from colocam.training.rounds import best_model
from colocam.training.validation import Validator
from tests.helpers.lessons import read_class_in_map


@pytest.fixture(scope="module")
def train(train_into):
    """``train(folder, …)`` trains two rounds; overrides are of the localizer."""

    def run(folder, *changes):
        changes = ("rounds=2", "epochs=1", "chooser=consensus", *changes)
        return train_into(folder, *(f"localizer.{change}" for change in changes))

    return run


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory):
    return train(tmp_path_factory.mktemp("rounds") / "run", "crop_head=true")


@pytest.mark.parametrize("damage", [None, "labels.npy"])
def test_an_interrupted_run_ends_as_an_undisturbed_one(damage, trained, train, tmp_path, monkeypatch):
    """Stopped while labels are made, then continued by the same call; damaged files are made again."""
    out, calls = tmp_path / "run", []

    def raise_once(what: str) -> None:
        calls.append(what)
        if len(calls) == 1:
            raise InterruptedRunError(what)

    monkeypatch.setattr(labels_module, "CLIPS", 1)
    monkeypatch.setattr(labels_module, "raise_if_stopped", raise_once)
    with pytest.raises(InterruptedRunError, match="labels of the next round"):
        train(out, "crop_head=true")
    assert json.loads((out / "colocam" / "round-1" / "labels.json").read_text()) == {"parts": 1}
    if damage:
        (out / "colocam" / "round-1" / damage).write_bytes(b"\x93NUMPY")
    train(out, "crop_head=true")
    assert (out / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    labels = [np.load(run / "colocam" / "round-1" / "labels.npy") for run in (trained, out)]
    np.testing.assert_array_equal(*labels)
    assert set(np.unique(labels[0])) <= {0, UNKNOWN, FOREGROUND}


@pytest.mark.parametrize(("growth", "mean", "threshold"), [(0.8, "off", 0.2), (1.1, "clip", 0.25)])
def test_what_is_decided_about_colors_holds_for_labels_and_model(
    growth, mean, threshold, collection, train, tmp_path, monkeypatch, capsys
):
    """A run that decides is the run that was told: the labels of the first round, and the model with its card."""
    monkeypatch.setattr(validation, "color_growth", lambda *_: growth)
    auto = train(tmp_path / "auto", "color_mean=auto", "threshold=0.25")
    said = capsys.readouterr().err
    assert f"colocam, round 1: color mean {mean} (with it, boxes" in said
    assert f"colocam: color mean {mean} (with it, boxes of held-out videos have {100 * growth:.0f} % of" in said
    told = train(tmp_path / "told", f"color_mean={mean}", f"threshold={threshold}")
    assert "color mean" not in capsys.readouterr().err
    labels = [(one / "colocam" / "round-1" / "labels.npy").read_bytes() for one in (auto, told)]
    assert labels[0] == labels[1]
    assert (auto / "model.safetensors").read_bytes() == (told / "model.safetensors").read_bytes()
    cards = [json.loads((one / "model.json").read_text()) for one in (auto, told)]
    assert cards[0] == cards[1] | {"color_growth": growth}
    scores = [evaluate(one, collection.truth).methods["colocam"] for one in (auto, told)]
    assert capsys.readouterr().err.count(f"CoLo-CAM: maps with color mean {mean}\n") == 2
    assert scores[0] == scores[1]
    assert scores[0]["tags-only"].threshold == threshold


@pytest.mark.parametrize("helps", [True, False])
def test_the_class_is_read_in_the_map_if_this_helps(helps, collection, train, tmp_path, monkeypatch):
    """The decoder is the same either way; an evaluation reads the class as the model does."""
    asked = []
    asks = import_module("colocam.training.train")
    monkeypatch.setattr(asks, "reading_helps", lambda model, _: asked.append(model.card.class_in_map) or helps)
    run = train(tmp_path / "run", "class_in_map=auto")
    assert asked == [True]
    model = load_model(run)
    assert model.card.class_in_map == model.net.class_in_map == helps
    read = []
    before = localizer_net._like
    monkeypatch.setattr(localizer_net, "_like", lambda last, maps: read.append(len(maps)) or before(last, maps))
    evaluate(run, collection.truth)
    assert bool(read) == helps


@pytest.mark.parametrize("helps", [True, False])
def test_the_map_is_read_unless_held_out_tags_are_much_less_likely(helps, own_run, monkeypatch):
    read_class_in_map(own_run)
    model = load_model(own_run)
    frames = torch.randint(0, 256, (4, 3, 32, 32), generator=torch.Generator().manual_seed(0)).float()
    with torch.inference_mode():
        gain = model.net(frames).class_logits.log_softmax(1) - model.net.classifier.logits(frames).log_softmax(1)
    lost = -float(gain.amin(1).mean())
    assert lost > 0
    samples = SimpleNamespace(batches=lambda *_: [(frames, gain.argmin(1))])
    sizes = read_config(own_run / "config.yaml").frames
    validator = Validator(samples, None, model.card.tags, sizes, torch.device("cpu"))
    monkeypatch.setattr(keep_start, "MARGIN", lost + (0.01 if helps else -0.01))
    assert keep_start.reading_helps(model, validator) == helps


def test_a_threshold_that_is_missing_is_named(trained, tmp_path):
    run = open_run(trained, "cpu")
    method = run.config.methods[0]
    for file in (trained / method).glob("best*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    best_model(run, run.classifier(), method, tmp_path)
    state = json.loads((tmp_path / "best.json").read_text())
    del state["threshold"]
    (tmp_path / "best.json").write_text(json.dumps(state))
    with pytest.raises(ColocamError, match=r"best\.json is damaged .*delete"):
        best_model(run, run.classifier(), method, tmp_path)
