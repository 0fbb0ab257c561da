"""The names of ImageNet's classes are fitted to tags, used where held-out tags say so, and kept by runs that follow."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from colocam.config import load_config
from colocam.config.card import read_card
from colocam.errors import ColocamError
from colocam.models.model_file import load_model
from colocam.models.timm_networks import create, imagenet_layers
from colocam.run import open_run
from colocam.training import class_names
from colocam.training.frozen_encoder import balance, training_frames
from colocam.training.validation import Validator
from tests.helpers.small_runs import TINY


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Weights of the small network with a classifier of 1,000 classes."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    backbone = load_config(overrides=TINY).backbone.model_copy(update={"pretrained": False})
    save_file({name: one.contiguous() for name, one in create(backbone).state_dict().items()}, path)
    return path


@pytest.fixture
def named(train_into, weights, tmp_path, monkeypatch):
    """``named(helps, override, …)`` trains with these weights; the decision about the names is given."""

    def run(helps, *overrides):
        monkeypatch.setattr(class_names, "likelihoods", lambda *_: (0.5, 0.4 if helps else 0.6))
        return train_into(
            tmp_path / f"run-{helps}",
            "classifier.fit=logistic",
            f"backbone.weights={weights}",
            f"classifier.imagenet={weights}",
            "localizer.class_in_map=large",
            "localizer.epochs=1",
            *overrides,
        )

    return run


def test_t_and_b_are_the_best_for_the_tags_of_the_training_frames(named):
    run = open_run(named(True), "cpu")
    model = load_model(run.folder)
    names = model.net.names
    assert model.card.imagenet == names.classes.in_features
    samples = training_frames(run.config, run.clips("train"), run.catalogue.tags)
    frames, classes = samples.read(slice(None), model.card.size, run.device)
    evidence, omega = model.net.evidence(frames).double().numpy(), balance(samples, 3).numpy()

    def loss(scale, shift):
        logits = scale * evidence + shift
        right = logits[np.arange(len(classes)), classes] - np.log(np.exp(logits).sum(1))
        return -(right * omega).sum() / omega.sum() + 1e-3 * (shift**2).sum()

    scale, shift = float(names.scale), names.shift.double().numpy()
    assert scale >= 0
    least = loss(scale, shift)
    for step in (0.05, -0.05):
        assert scale + step < 0 or loss(scale + step, shift) > least - 1e-4
        for tag in range(3):
            assert loss(scale, shift + step * np.eye(3)[tag]) > least - 1e-6


def test_they_are_left_out_where_held_out_tags_are_less_likely(named, capsys):
    folder = named(False)
    assert read_card(folder).imagenet is None
    assert load_model(folder).net.names is None
    assert "0.60 with the names of ImageNet's classes, 0.50 without, so they are left out" in capsys.readouterr().err


def test_held_out_tags_are_asked_with_and_without_them(named, monkeypatch):
    asked = class_names.likelihoods
    folder = named(True)
    monkeypatch.setattr(class_names, "likelihoods", asked)
    model = load_model(folder)
    run = open_run(folder, "cpu")
    samples = training_frames(run.config, run.clips("val"), run.catalogue.tags)
    frames, classes = samples.read(slice(None), model.card.size, run.device)
    names = model.net.names
    held_out = Validator(samples, None, run.catalogue.tags, run.config.frames, run.device)
    before, after = asked(model.net, held_out)
    assert model.net.names is names
    with torch.inference_mode():
        entropy = torch.nn.functional.cross_entropy(model.net(frames).class_logits, classes)
        model.net.names = None
        alone = torch.nn.functional.cross_entropy(model.net(frames).class_logits, classes)
    assert [before, after] == pytest.approx([float(alone), float(entropy)], abs=1e-4)
    assert before != pytest.approx(after, abs=1e-4)


def test_a_run_that_starts_from_it_fits_them_anew(named, train_into, tmp_path):
    first = named(True)
    begun = train_into(
        tmp_path / "begun",
        f"start.model={first}",
        "start.decoder=keep",
        "classifier.fit=logistic",
        "localizer.rounds=2",
    )
    assert read_card(begun).imagenet == read_card(first).imagenet
    kept, given = (load_model(folder).net.names for folder in (begun, first))
    assert torch.equal(kept.classes.weight, given.classes.weight)


def test_weights_without_such_layers_are_refused(weights):
    backbone = load_config(overrides=TINY).backbone
    strange = backbone.model_copy(update={"args": {**backbone.args, "num_classes": 7}})
    with pytest.raises(ColocamError, match="must not hold 'num_classes'"):
        imagenet_layers(strange, weights)
    with pytest.raises(ColocamError, match=r"layers of 'efficientnet_b0'.*use a ResNet or an EfficientNet-Lite"):
        imagenet_layers(backbone.model_copy(update={"name": "efficientnet_b0", "args": {}}), weights)


def test_a_trained_encoder_has_no_names():
    with pytest.raises(ColocamError, match=r"set classifier\.fit to logistic"):
        load_config(overrides=("classifier.fit=sgd", "classifier.imagenet=weights.safetensors"))
