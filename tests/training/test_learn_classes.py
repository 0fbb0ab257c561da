"""Learning a class that the model does not know: one more output of its heads, or labels only."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from colocam import evaluate
from colocam.inference import Localizer
from colocam.labels import Correction, write_corrections
from colocam.labels.labeled_videos import LeftOut
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training.learning import frames as learn_frames
from colocam.training.learning import lesson as module
from colocam.training.learning.frames import corrected_frames
from colocam.training.learning.heads import LEAST_FRAMES, PENALTY, fitted_rows, grown_model, head_features
from colocam.training.learning.lesson import learn, learning_without
from colocam.types import Box
from tests.helpers.lessons import add_crop_head, of_truth

HEAD_ALONE = learning_without("threshold", "presence", "seeds", "projection")


@pytest.fixture(scope="module")
def known(trained, collection):
    """Corrections of the run's own videos."""
    return of_truth(trained, collection, "train")


@pytest.fixture(scope="module")
def foxes(tmp_path_factory, make_video):
    """Corrections of four videos of a class that no model knows: a bright square over black."""
    made, folder = [], tmp_path_factory.mktemp("foxes")
    for number in range(4):
        rng = np.random.default_rng(number)
        pictures = [rng.integers(0, 20, (40, 48, 3)).astype(np.uint8) for _ in range(6)]
        for at, picture in enumerate(pictures):
            picture[10:30, 10 + at : 30 + at] = (250, 250, 240)
        video = make_video(folder / f"fox-{number}.mp4", pictures)
        boxes = [(Box(10 + at, 10, 30 + at, 30),) for at in range(6)]
        made += [Correction(video.stem, at, None, "class", "fox", box, path=str(video)) for at, box in enumerate(boxes)]
    return made


@pytest.fixture
def held_out(monkeypatch):
    """``held_out(*names)`` chooses the videos that are held out; otherwise that depends on the paths of files."""

    def choose(*names):
        chosen = lambda videos, _: {one for one in videos if one.removesuffix(".mp4").endswith(names)}  # noqa: E731
        monkeypatch.setattr(learn_frames, "held_out_videos", chosen)

    return choose


@pytest.mark.parametrize("crop_head", [False, True])
def test_a_new_class_is_one_more_output(own_run, collection, known, foxes, tmp_path, crop_head, held_out):
    held_out("bus/train-0", "fox-0")
    if crop_head:
        add_crop_head(own_run)
    file = write_corrections(tmp_path / "mine.csv", [*known, *foxes])
    learned = learn(own_run, [file], tmp_path / "new", HEAD_ALONE)
    assert learned.classes == ("fox",)
    assert "classes" in learned.kept
    assert any("learned new classes (fox)" in line for line in learned.lines())
    old, new = load_model(own_run), load_model(tmp_path / "new")
    assert new.card.tags == (*old.card.tags, "fox")
    run = open_run(tmp_path / "new")
    assert run.catalogue.tags == new.card.tags
    assert run.classifier().head.out_features == 4
    if crop_head or "head" not in learned.kept:
        assert torch.equal(new.net.classifier.head.weight[:3], old.net.classifier.head.weight)
    # It is found in a video of its own, and the run can be measured and taught again.
    found = list(Localizer.load(tmp_path / "new")(foxes[-1].path))
    assert {one.tag for one in found} == {"fox"}
    assert evaluate(tmp_path / "new", collection.truth).methods["colocam"]
    again = learn(tmp_path / "new", [file], tmp_path / "newer", HEAD_ALONE)
    assert (again.classes, again.frames) == ((), learned.frames)
    assert load_model(tmp_path / "newer").card.tags == new.card.tags


def test_few_frames_of_a_new_class_serve_as_labels_only(trained, known, foxes, tmp_path):
    few = foxes[: LEAST_FRAMES - 1]
    file = write_corrections(tmp_path / "mine.csv", [*known, *few])
    for number, how in enumerate((HEAD_ALONE, learning_without("head", "seeds", "projection"))):
        learned = learn(trained, [file], tmp_path / f"new-{number}", how)
        assert learned.lines()[0] == (
            f"left out, {len(few)}×: class 'fox' is unknown to the model: its corrections serve as labels only"
        )
        assert load_model(tmp_path / f"new-{number}").card.tags == load_model(trained).card.tags


def test_a_new_class_that_makes_others_wrong_is_not_kept(trained, known, foxes, tmp_path, monkeypatch, held_out):
    held_out("bus/train-0", "fox-0")  # more frames of the new class become right than others become wrong

    def takes_all(net, *_, first_new):
        net.classifier.head.bias[first_new:] = 1e3

    monkeypatch.setattr(module, "fit_heads", takes_all)
    # The classes of the other videos are those that the model says, so each of them is right before.
    run, net = open_run(trained), load_model(trained).net
    frames = corrected_frames(run, known, LeftOut())
    features = head_features(net, frames.samples, run.config.frames.crop, run.device)
    right = (features.float() @ net.classifier.head.weight.T + net.classifier.head.bias).argmax(1).tolist()
    places = [(clip.clip.name, int(clip.index[at])) for clip, at in frames.samples.where()]
    tag_of = dict(zip(places, (run.catalogue.tags[one] for one in right), strict=True))
    said = [replace(one, kind="class", tag=tag_of[one.video, one.frame]) for one in known if one.boxes]
    file = write_corrections(tmp_path / "mine.csv", [*said, *foxes[:12]])
    learned = learn(trained, [file], tmp_path / "new", HEAD_ALONE)
    assert learned.classes == ()
    assert any("new class fox: held-out frames of other classes" in line for line in learned.lines())
    assert any("serve as labels only" in line for line in learned.lines())
    assert load_model(tmp_path / "new").card.tags == load_model(trained).card.tags
    told = json.loads((tmp_path / "new" / "learning.json").read_text())
    assert "classes" not in [stage["name"] for stage in told["stages"]]


def test_new_rows_are_those_of_an_independent_optimizer():
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(4, 6)), rng.normal(size=4)
    parts = [(rng.normal(size=(20, 6)), rng.integers(0, 4, 20)), (rng.normal(size=(30, 6)), rng.integers(0, 3, 30))]

    def loss(values):
        whole, offsets = np.vstack([weight[:3], values[:6]]), np.append(bias[:3], values[6])
        total = PENALTY * (values[:6] ** 2).sum() / (weight[:3] ** 2).sum(1).mean()
        for features, classes in parts:
            logits = features @ whole.T + offsets
            most = logits.max(1, keepdims=True)
            log = most[:, 0] + np.log(np.exp(logits - most).sum(1))
            total += (log - logits[np.arange(len(classes)), classes]).mean()
        return total

    expected = minimize(loss, np.zeros(7)).x
    given = [(torch.from_numpy(features), torch.from_numpy(classes)) for features, classes in parts]
    empty = (torch.zeros(0, 6, dtype=torch.float64), torch.zeros(0, dtype=torch.int64))
    w, b = fitted_rows(torch.from_numpy(weight), torch.from_numpy(bias), 3, [*given, empty])
    np.testing.assert_allclose(np.append(w, b), expected, atol=1e-3)


def test_a_grown_model_says_the_same_of_the_classes_it_knows(trained):
    old = load_model(trained)
    card = old.card.model_copy(update={"class_thresholds": (0.1, 0.2, 0.3)})
    new = grown_model(replace(old, card=card), (*card.tags, "fox"))
    assert new.card.class_thresholds == (0.1, 0.2, 0.3, card.threshold)
    frames = torch.randint(0, 256, (2, 3, 32, 32), generator=torch.Generator().manual_seed(0)).float()
    before, after = old.net(frames), new.net(frames)
    torch.testing.assert_close(after.class_logits[:, :3], before.class_logits)
    torch.testing.assert_close(after.map_logits, before.map_logits)
    assert bool((after.class_logits.argmax(1) < 3).all())
    assert grown_model(old, old.card.tags) is old
