"""Stage 1 by logistic regression: the encoder stays as it was, the head fits, and a stopped run ends the same."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam.config import load_config
from colocam.data import batches
from colocam.data.augment import whole
from colocam.data.batches import BatchIndices, Samples
from colocam.errors import InterruptedRunError
from colocam.models import make_classifier
from colocam.run import open_run
from colocam.training import frozen_encoder
from colocam.training.frozen_encoder import balance
from colocam.utils.tensors import load_checkpoint, save_tensors
from tests.helpers.batch_norms import unsettle
from tests.helpers.run_files import journal, learned_files

LOGISTIC = (
    "classifier.fit=logistic",
    "classifier.size=16",
    "classifier.views=3",
    "classifier.frames_per_clip=4",
    "localizer.epochs=1",
)


@pytest.fixture(scope="module")
def encoder(tiny, tmp_path_factory):
    """Weights that a run starts from, with statistics of batch norms of their own."""
    torch.manual_seed(5)
    config = load_config(overrides=tiny)
    network = unsettle(make_classifier(config, config.backbone, 3).encoder.network)
    path = tmp_path_factory.mktemp("weights") / "encoder.safetensors"
    save_tensors(path, network.state_dict())
    return path, network.state_dict()


@pytest.fixture(scope="module")
def train(train_into, encoder):
    """``train(folder, …)`` trains with these weights."""
    return lambda folder, **more: train_into(folder, *LOGISTIC, f"backbone.weights={encoder[0]}", **more)


@pytest.fixture(scope="module")
def run(tmp_path_factory, train):
    return train(tmp_path_factory.mktemp("frozen") / "run")


def test_the_encoder_is_bit_for_bit_as_loaded(run, encoder):
    kept = open_run(run).classifier().encoder.network.state_dict()
    assert kept.keys() == encoder[1].keys()
    assert all(torch.equal(kept[name], value) for name, value in encoder[1].items())


def test_the_head_is_the_optimum_on_the_features_of_all_views(run, train, monkeypatch, tmp_path):
    """The features that the fit was given, and the gradient of its loss at the head that the run has."""
    given = {}

    def note(features, classes, weights, count, penalty, report):
        given.update(features=features, classes=classes, weights=weights, penalty=penalty)
        return fit(features, classes, weights, count, penalty, report)

    fit = frozen_encoder.fit_logistic
    monkeypatch.setattr(frozen_encoder, "fit_logistic", note)
    other = train(tmp_path / "run")
    assert learned_files(other) == learned_files(run)
    features, classes, weights = (given[name] for name in ("features", "classes", "weights"))
    assert len(features) == 3 * 6 * 4  # views, clips, frames
    torch.testing.assert_close(features.norm(dim=1), torch.ones(72))
    torch.testing.assert_close(weights.view(3, 24)[0].view(6, 4).sum(1), torch.full((6,), 0.5, dtype=torch.float64))
    head = open_run(run).classifier().head.double()
    head.zero_grad()
    losses = F.cross_entropy(head(features.double()), classes, reduction="none")
    loss = (losses * weights).sum() / weights.sum() + given["penalty"] / 2 * head.weight.square().sum()
    loss.backward()
    assert head.weight.grad.abs().max() < 1e-5
    # view 0 is what the class is read from
    classifier = open_run(run).classifier()
    first = open_run(run).clips("train")[0]
    frames = torch.from_numpy(np.array(first.frames)[[0, 1, 3, 4]]).permute(0, 3, 1, 2)
    small = F.interpolate(whole(frames, 32), size=(16, 16), mode="area")
    with torch.no_grad():
        pooled = F.normalize(classifier.encoder(small)[-1].mean((2, 3)), dim=1)
    torch.testing.assert_close(features[:4], pooled)


def test_the_head_does_not_depend_on_the_size_of_a_pass(run, train, monkeypatch, tmp_path):
    monkeypatch.setattr(batches, "ON_A_CPU", 3)
    heads = [open_run(folder).classifier().head.weight for folder in (run, train(tmp_path / "run"))]
    torch.testing.assert_close(heads[0], heads[1], rtol=1e-3, atol=1e-3)


def test_the_journal_has_the_fit_and_its_score(run):
    own = [line for line in journal(run) if line["phase"] == "classifier"]
    assert [line["event"] for line in own] == ["train"] * (len(own) - 1) + ["val"]
    assert own[-2]["loss"] < own[0]["loss"] == pytest.approx(np.log(3), abs=1e-5)
    best = load_checkpoint(run / "classifier", "best")[1]
    assert own[-1]["accuracy"] == pytest.approx(best["accuracy"], abs=1e-5)


@pytest.mark.parametrize("moment", [0, 2, 5])
def test_a_stopped_fit_ends_as_one_that_was_not(run, train, monkeypatch, tmp_path, moment):
    calls = itertools.count()

    def stop(what):
        if next(calls) == moment:
            raise InterruptedRunError(f"stopped in {what}")

    monkeypatch.setattr(frozen_encoder, "raise_if_stopped", stop)
    with pytest.raises(InterruptedRunError, match="run the same command again to continue"):
        train(tmp_path / "run")
    kept = len(list((tmp_path / "run" / "classifier").glob("view-*.npy")))
    assert kept == min(moment, 3)  # one batch a view
    train(tmp_path / "run")
    assert learned_files(tmp_path / "run") == learned_files(run)


def test_features_of_other_frames_are_computed_again(run, train, monkeypatch, tmp_path):
    """A view that an earlier start kept, before a video could be read again."""

    def stop(*_):
        raise InterruptedRunError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(frozen_encoder, "fit_logistic", stop)
        with pytest.raises(InterruptedRunError):
            train(tmp_path / "run")
    np.save(tmp_path / "run" / "classifier" / "view-1.npy", np.zeros((3, 8), np.float32))
    train(tmp_path / "run")
    assert learned_files(tmp_path / "run") == learned_files(run)


def test_a_finished_fit_is_not_repeated_and_can_be_shared(run, train, monkeypatch, tmp_path):
    before = learned_files(run)
    monkeypatch.setattr(frozen_encoder, "make_classifier", None)
    train(run)
    assert learned_files(run) == before
    other = train(tmp_path / "run", classifier=run)
    assert (other / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()


def test_random_weights_are_worth_a_warning(train_into, tmp_path, capfd):
    train_into(tmp_path / "run", *LOGISTIC, "methods=[]")
    assert "warning: classifier.fit is logistic, but the encoder has random weights" in capfd.readouterr().err


def test_each_class_counts_the_same_and_a_video_by_the_root_of_its_frames():
    class Named:
        def __init__(self, video):
            self.clip = type("Clip", (), {"video": video})

    clips = [Named("a"), Named("a"), Named("b"), Named("c")]
    clip = torch.tensor([0, 0, 1, 1, 2, 3, 3, 3])
    classes = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    weights = balance(Samples(clips, BatchIndices(clip, clip, clip), classes), 2)
    torch.testing.assert_close(weights[:4].sum() / weights[4], torch.tensor(2.0, dtype=torch.float64))
    torch.testing.assert_close(weights[5:], torch.full((3,), 1 / 3, dtype=torch.float64))
    assert weights[:5].sum() == pytest.approx(1)
