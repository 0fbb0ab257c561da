"""A second decoder learns what a prior sees; runs, students and starts keep it; another prior is refused."""

import numpy as np
import pytest
import torch

from colocam.config.card import LearnedPrior, read_card
from colocam.data.augment import placed, sample_places
from colocam.data.batches import spread_samples
from colocam.errors import ColocamError
from colocam.maps.prior import open_prior
from colocam.models import foreground
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training import prior_decoder as module
from colocam.training.keep_start import likelihood
from colocam.training.own_labels import SIDE
from colocam.training.validation import Validator
from colocam.utils.digests import file_digest
from colocam.utils.tensors import load_checkpoint
from tests.helpers.red_prior import write_red_prior

TWO = ("localizer.rounds=2", "localizer.epochs=1", "localizer.chooser=consensus")


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    return write_red_prior(tmp_path_factory.mktemp("prior") / "red.onnx", "1,3,32,32")


@pytest.fixture(scope="module")
def learned_run(train_into, red, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STEPS", 250)
        return train_into(tmp_path_factory.mktemp("prior-run") / "run", *TWO, f"localizer.prior={red}")


def drawn(net, samples, size):
    """(N, M, M) maps of the prior decoder by itself."""
    with torch.inference_mode():
        frames, _ = samples.read(slice(None), size, torch.device("cpu"))
        return foreground(net.prior(frames, net.classifier.encoder(frames))).numpy()


def test_the_decoder_draws_what_the_prior_sees(learned_run, red):
    run, model = open_run(learned_run, "cpu"), load_model(learned_run)
    samples = spread_samples(run.clips("train"), model.card.tags, per_clip=4)
    frames, _ = samples.read(slice(None), model.card.size, run.device)
    prior = open_prior(red)
    truth = [prior.map(image) for image in frames.round().byte().permute(0, 2, 3, 1).numpy()]
    found = drawn(model.net, samples, model.card.size)
    small = torch.nn.functional.interpolate(torch.from_numpy(found)[:, None], truth[0].shape, mode="area")[:, 0]
    assert np.corrcoef(small.numpy().ravel(), np.stack(truth).ravel())[0, 1] > 0.35  # of noise, by a random encoder


def test_what_the_prior_sees_is_stored_frame_by_frame(learned_run, red):
    run = open_run(learned_run, "cpu")
    samples = spread_samples(run.clips("train"), run.catalogue.tags, module.PER_CLIP)
    stored, prior = np.load(learned_run / "colocam" / "prior" / "seen.npy"), open_prior(red)
    assert stored.shape == (len(samples), SIDE, SIDE)
    for row in (0, len(samples) - 1):
        clip, frame = (int(part[row]) for part in (samples.indices.clips, samples.indices.frames))
        mean = prior.map(np.asarray(samples.clips[clip].frames[frame])).mean()
        assert stored[row].mean() == pytest.approx(mean, abs=2)


def test_the_prior_changes_nothing_in_the_first_decoder(learned_run, train_into, tmp_path):
    """Labels of rounds come from maps that are not weighed: without its prior decoder, it learned from tags alone."""
    alone = load_model(train_into(tmp_path / "alone", *TWO)).net.decoder.state_dict()
    taught = load_model(learned_run).net.decoder.state_dict()
    assert all(torch.equal(alone[name], taught[name]) for name in alone)


def test_pasted_objects_hide_what_was_there():
    """A quarter of the frame, in its middle: the other frame's right half, of which the prior sees all."""
    frames, target = torch.zeros(2, 3, 32, 32), torch.full((2, 1, 16, 16), 0.2)
    masks = torch.zeros(1, 8, 8, dtype=torch.uint8)
    masks[:, :, 4:] = 255
    loaded = {
        "objects": torch.full((1, 3, 32, 32), 200, dtype=torch.uint8),
        "masks": masks,
        "places": torch.tensor([[0.5, 0.0, 0.0, 1.0]]),
        "pasted": torch.tensor([1]),
    }
    module.paste_objects(frames, target, loaded)
    assert not frames[0].any()
    assert (target[0] == 0.2).all()
    assert frames[1, 0, 12:20, 18:22].eq(200).all()
    assert not frames[1, 0, :, :14].any()
    assert target[1, 0, 6:10, 9:11].eq(1).all()
    assert target[1, 0, :, :7].eq(0.2).all()


def test_a_pasted_frame_lies_inside_and_may_be_mirrored():
    picture = torch.arange(4.0)[None, None, None].expand(1, 1, 4, 4)
    places = torch.tensor([[0.5, 0.5, -0.5, -1.0]])  # the upper right quarter
    small = placed(picture, places, 8)[0, 0]
    assert small[:4, 4:].mean(0).tolist() == [3, 2, 1, 0]
    assert not small[4:].any()
    assert not small[:, :4].any()
    sampled = sample_places(1000, 0.25, torch.Generator().manual_seed(0))
    sides, centers = sampled[:, 0], sampled[:, 1:3]
    assert 0.25 <= sides.min() < 0.26
    assert 0.98 < sides.max() <= 1
    assert ((centers.abs() + sides[:, None]) <= 1 + 1e-6).all()


def test_the_card_names_the_prior_and_its_decoder(learned_run, red):
    card = read_card(learned_run)
    assert card.prior == LearnedPrior(name="red", digest=file_digest(red))
    assert card.prior_decoder == tuple(width // 2 for width in card.decoder)


def test_a_student_inherits_the_name_alone(learned_run, train_into, tmp_path):
    """It learns from boxes of maps that were weighed."""
    student = read_card(train_into(tmp_path / "student", *TWO, f"localizer.teacher={learned_run}"))
    assert student.prior == read_card(learned_run).prior
    assert student.prior_decoder is None


def test_a_run_that_starts_from_it_keeps_the_prior_decoder(learned_run, train_into, tmp_path):
    begun = train_into(tmp_path / "begun", f"start.model={learned_run}", "start.decoder=keep", "localizer.rounds=2")
    assert read_card(begun).prior == read_card(learned_run).prior
    weights, ours = (load_model(folder).net.prior.state_dict() for folder in (learned_run, begun))
    assert all(torch.equal(weights[name], ours[name]) for name in weights)


def test_the_decoder_of_a_start_is_asked_by_itself(learned_run):
    """Boxes of weighed maps are tighter: with them, tags were less likely in crops, and good decoders thrown away."""
    run, model = open_run(learned_run, "cpu"), load_model(learned_run)
    validator = Validator(
        spread_samples(run.clips("val"), model.card.tags, 4),
        None,
        model.card.tags,
        run.config.frames,
        run.device,
        "cam",
    )
    asked = likelihood(model, validator)
    assert model.net.prior is not None
    model.net.prior = None
    assert likelihood(model, validator) == asked


def test_another_prior_is_refused_when_a_run_goes_on(learned_run, train_into, red):
    content = red.read_bytes()
    try:
        write_red_prior(red, "1,3,16,16")
        with pytest.raises(ColocamError, match=r"was begun with the prior red \(SHA-256 .*give the same file"):
            train_into(learned_run, *TWO, f"localizer.prior={red}")
    finally:
        red.write_bytes(content)


def test_an_interrupted_run_goes_on_and_learns_the_same(learned_run, red, train_into, tmp_path, monkeypatch):
    """Stopped after some frames were seen, and again between steps."""
    monkeypatch.setattr(module, "STEPS", 250)
    see, stopped = module.kept_maps, []

    def stop_once(folder, name, counts, make, text):
        def once(at):
            if at == 1 and not stopped:
                stopped.append(at)
                raise KeyboardInterrupt
            return make(at)

        return see(folder, name, counts, once, text)

    monkeypatch.setattr(module, "kept_maps", stop_once)
    folder = tmp_path / "run"
    with pytest.raises(ColocamError, match="run the same command again"):
        train_into(folder, *TWO, f"localizer.prior={red}")
    assert stopped == [1]
    train_into(folder, *TWO, f"localizer.prior={red}")
    (one, _), (other, _) = (load_checkpoint(run / "colocam" / "prior", "best") for run in (learned_run, folder))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_without_a_prior_has_none(own_run):
    assert read_card(own_run).prior is None
    assert read_card(own_run).prior_decoder is None


def test_a_missing_prior_is_refused_before_training(train_into, tmp_path):
    with pytest.raises(ColocamError, match="no prior at "):
        train_into(tmp_path / "new", *TWO, f"localizer.prior={tmp_path / 'missing.onnx'}")
    assert not (tmp_path / "new").exists()
