"""Labels of later rounds whose maps a prior weighs, against the same by hand; the card; another prior is refused."""

import numpy as np
import pytest

from colocam.config import load_config
from colocam.config.card import PriorOfLabels, read_card
from colocam.data.batches import spread_samples
from colocam.errors import ColocamError
from colocam.maps import prior as prior_module
from colocam.maps.mapper import map_batches, model_mapper
from colocam.run import open_run
from colocam.training import own_labels
from colocam.training.own_labels import box_labels
from colocam.training.rounds import best_model
from colocam.utils.digests import file_digest
from tests.helpers.red_prior import weighed_by_hand, write_red_prior

TWO = ("localizer.rounds=2", "localizer.epochs=1", "localizer.chooser=consensus")


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    return write_red_prior(tmp_path_factory.mktemp("prior") / "red.onnx", "1,3,32,32")


@pytest.fixture(scope="module")
def weighed_run(train_into, red, tmp_path_factory):
    return train_into(tmp_path_factory.mktemp("prior-run") / "run", *TWO, f"localizer.prior={red}")


def test_labels_come_from_maps_that_are_weighed_by_hand(weighed_run, red, tmp_path, monkeypatch):
    run, read = open_run(weighed_run, "cpu"), []
    model = best_model(run, run.classifier(), "colocam", weighed_run / "colocam" / "round-1")
    clips = run.clips("train")[:3]

    def record(maps, boxes, labeled):
        read.append(maps)
        return box_labels(maps, boxes, labeled)

    monkeypatch.setattr(prior_module, "AGREEMENT", -1)  # this model knows nothing of red
    monkeypatch.setattr(own_labels, "box_labels", record)
    own_labels.own_labels(model, clips, tmp_path, run.device, red)
    assert len(read) == len(clips)
    for clip, found in zip(clips, read, strict=True):
        samples = spread_samples([clip], model.card.tags, per_clip=len(clip))
        maps = np.concatenate(list(map_batches(model_mapper(model), samples, model.card.size, run.device)))
        frames, _ = samples.read(slice(None), model.card.size, run.device)
        for level, one, image in zip(maps, found, frames.round().numpy(), strict=True):
            np.testing.assert_allclose(one, weighed_by_hand(level, image[0] / image.max()), atol=1.5)
        assert (found != maps).any()


def test_the_card_names_the_prior(weighed_run, red):
    assert read_card(weighed_run).prior == PriorOfLabels(name="red", digest=file_digest(red))


def test_a_student_inherits_the_prior_of_its_teacher(weighed_run, train_into, tmp_path):
    student = train_into(tmp_path / "student", *TWO, f"localizer.teacher={weighed_run}")
    assert read_card(student).prior == read_card(weighed_run).prior


def test_another_prior_is_refused_when_a_run_goes_on(weighed_run, train_into, red):
    content = red.read_bytes()
    try:
        write_red_prior(red, "1,3,16,16")
        with pytest.raises(
            ColocamError, match=r"was begun with labels of the prior red \(SHA-256 .*give the same file"
        ):
            train_into(weighed_run, *TWO, f"localizer.prior={red}")
    finally:
        red.write_bytes(content)
    train_into(weighed_run, *TWO, f"localizer.prior={red}")


def test_a_run_without_a_prior_has_none(own_run):
    assert read_card(own_run).prior is None


def test_a_prior_that_nothing_would_read_is_refused():
    with pytest.raises(ColocamError, match=r"localizer.prior weighs the maps .*, but localizer.rounds is 1: set it"):
        load_config("paper", None, ["localizer.prior=red.onnx"])


def test_a_missing_prior_is_refused_before_training(train_into, tmp_path):
    with pytest.raises(ColocamError, match="no prior at "):
        train_into(tmp_path / "new", *TWO, f"localizer.prior={tmp_path / 'missing.onnx'}")
    assert not (tmp_path / "new").exists()
