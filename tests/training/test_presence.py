"""Which frames training draws from, and what each counts: against sets and sums made by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from colocam.cams import extract
from colocam.config import load_config
from colocam.data.batches import BatchIndices, plan_frames, plan_sequences, read_frames
from colocam.data.samplers import interval
from colocam.errors import ColocamError, InterruptedRunError
from colocam.models import Classifier
from colocam.run import open_run
from colocam.temporal.presence import clip_presence
from colocam.training import loop, train
from colocam.training.presence import BOUND, FramesInUse, all_frames, frames_with_object
from colocam.training.stage1 import cross_entropy
from colocam.training.train import _validator

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # however busy the machine is
values = st.lists(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=9), min_size=1, max_size=4)


def every_pick(in_use):
    """All frames that may be drawn, as one step."""
    clips = torch.cat([torch.full((n,), c) for c, n in enumerate(in_use.lengths)])
    frames = torch.cat([torch.arange(n) for n in in_use.lengths])
    return BatchIndices(clips, frames, clips)


def drawn(in_use):
    """Numbers of the frames in use, clip by clip."""
    indices = in_use.frames_of(every_pick(in_use))
    return [indices.frames[indices.clips == c].tolist() for c in range(len(in_use.lengths))]


@settings(RELAXED, max_examples=50)
@given(presences=values)
def test_dropped_are_improbable_frames_and_never_more_than_half(presences):
    in_use = FramesInUse([torch.tensor(one) for one in presences], "drop")
    assert in_use.weights(every_pick(in_use)) == {}
    for one, kept in zip(presences, drawn(in_use), strict=True):
        assert kept == sorted(set(kept))
        gone = set(range(len(one))) - set(kept)
        assert all(one[i] < BOUND for i in gone)
        assert len(kept) >= len(one) / 2
        assert all(one[i] <= one[k] for i in gone for k in kept)  # the best stay
        needed = math.ceil(len(one) / 2)
        assert len(kept) == max(needed, sum(p >= BOUND for p in one))


@settings(RELAXED, max_examples=50)
@given(presences=values)
def test_weights_are_relative_to_the_best_frame_of_the_clip(presences):
    in_use = FramesInUse([torch.tensor(one) for one in presences], "weight")
    assert drawn(in_use) == [list(range(len(one))) for one in presences]
    found = in_use.weights(every_pick(in_use))["weights"].tolist()
    wanted = [p / max(1e-6, *one) if len(one) > 1 else p / max(1e-6, one[0]) for one in presences for p in one]
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-30)


def test_off_changes_nothing():
    in_use = FramesInUse([torch.tensor([0.1, 0.9, 0.0]), torch.tensor([0.2])], "off")
    assert in_use.lengths == [3, 1]
    assert drawn(in_use) == [[0, 1, 2], [0]]
    assert in_use.weights(every_pick(in_use)) == {}


def test_plans_draw_from_the_frames_in_use_and_keep_their_number_of_steps():
    presences = [torch.tensor([0.1, 0.9, 0.8, 0.2, 0.9, 0.9]), torch.tensor([0.9, 0.1, 0.1, 0.1])]
    in_use = FramesInUse(presences, "drop")
    allowed = [{1, 2, 4, 5}, {0, 1}]
    whole = [6, 4]
    frames = {"per_clip": 5, "batch": 3, "window": 1.0, "seed": 3, "epoch": 1}
    sequences = {"n": 3, "per_clip": 2, "batch": 3, "window": 1.0, "seed": 3, "epoch": 1}
    for plan, every in (
        (plan_frames(in_use.lengths, **frames), plan_frames(whole, **frames)),
        (plan_sequences(in_use.lengths, interval, **sequences), plan_sequences(whole, interval, **sequences)),
    ):
        assert len(plan) == len(every)
        seen = [set(), set()]
        for indices in map(in_use.frames_of, plan):
            for clip, frame in zip(indices.clips.tolist(), indices.frames.tolist(), strict=True):
                seen[clip].add(frame)
        assert seen[0] <= allowed[0]
        assert seen[1] <= allowed[1]


def test_weighted_cross_entropy_is_a_weighted_mean():
    rng = torch.Generator().manual_seed(0)
    logits, classes = torch.randn(5, 3, generator=rng), torch.tensor([0, 1, 2, 1, 0])
    weights = torch.tensor([1.0, 0.0, 0.5, 0.25, 1.0])
    each = [float(F.cross_entropy(logits[i : i + 1], classes[i : i + 1], label_smoothing=0.1)) for i in range(5)]
    found = cross_entropy(logits, classes, 0.1, weights)
    assert float(found) == pytest.approx(np.average(each, weights=weights.numpy()), rel=1e-6)
    assert float(cross_entropy(logits, classes, 0.1, None)) == pytest.approx(np.mean(each), rel=1e-6)
    assert float(cross_entropy(logits, classes, 0.1, torch.zeros(5))) == 0


@pytest.fixture(scope="module")
def run(trained):
    return open_run(trained, "cpu")


@pytest.fixture(scope="module")
def validator(run):
    return _validator(run, run.clips("val"), None)


def test_presences_of_training_frames_by_hand(run, validator, tmp_path):
    """Clip by clip: peaks of its tag's activation maps, calibrated on validation videos, over time."""
    classifier, clips = run.classifier(), run.clips("train")
    path = tmp_path / "presence.safetensors"
    frames_with_object("weight", path, classifier, clips, validator)
    measured = load_file(path)["presence"].split([len(clip) for clip in clips])
    calibration = validator.presence(classifier)
    for clip, found in zip(clips, measured, strict=True):
        tag = torch.full((len(clip),), validator.tags.index(clip.clip.tag))
        numbers = torch.arange(len(clip))
        frames = read_frames([clip], BatchIndices(torch.zeros_like(numbers), numbers, numbers))
        frames = F.interpolate(
            frames.float(), size=validator.size, mode="bilinear", antialias=True, align_corners=False
        )
        peaks = extract("cam", classifier, frames, tag).amax((1, 2)).numpy()
        np.testing.assert_allclose(found.numpy(), clip_presence(peaks, calibration), atol=0.02)
    assert torch.cat(measured).std() > 0


def test_what_was_measured_is_kept(run, validator, tmp_path):
    """Training goes on with the presences that it began with, although the classifier has changed since."""
    clips, path = run.clips("train"), tmp_path / "presence.safetensors"
    frames_with_object("drop", path, run.classifier(), clips, validator)
    before = path.read_bytes()
    torch.manual_seed(9)
    frames_with_object("drop", path, Classifier(run.config.backbone, 3), clips, validator)
    assert path.read_bytes() == before
    path.write_bytes(before[:-7])
    with pytest.raises(ColocamError, match=r"presence\.safetensors is damaged .*: delete it"):
        frames_with_object("drop", path, run.classifier(), clips, validator)
    save_file({"presence": torch.ones(2)}, path)
    with pytest.raises(ColocamError, match=r"presence\.safetensors is damaged .*: delete it"):
        frames_with_object("drop", path, run.classifier(), clips, validator)


def test_a_clip_without_any_ground_keeps_all_its_frames(run, validator, tmp_path, monkeypatch):
    monkeypatch.setattr(type(validator), "presence", lambda self, classifier: None)  # noqa: ARG005
    clips = run.clips("train")
    in_use = frames_with_object("drop", tmp_path / "p.safetensors", run.classifier(), clips, validator)
    assert in_use.lengths == all_frames(clips).lengths == [len(clip) for clip in clips]


@pytest.mark.parametrize("use", ["weight", "drop"])
def test_each_use_trains_and_goes_on_exactly_after_a_stop(tmp_path, collection, frame_cache, tiny, monkeypatch, use):
    config = load_config(overrides=[*tiny, f"classifier.presence={use}", f"localizer.presence={use}"])
    whole = train(collection.manifest, tmp_path / "whole", config, frames=frame_cache)
    for moment, phase in ((5, "classifier after step 5"), (3, "colocam after step 2")):
        calls = itertools.count()
        monkeypatch.setattr(loop, "stop_requested", lambda calls=calls, moment=moment: next(calls) >= moment)
        with pytest.raises(InterruptedRunError, match=f"stopped in {phase}"):
            train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    monkeypatch.setattr(loop, "stop_requested", lambda: False)
    train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    for name in (
        "model.safetensors",
        "metrics.jsonl",
        "classifier/halfway.safetensors",
        "classifier/presence.safetensors",
    ):
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes(), name


def test_presence_changes_the_second_half_of_stage_1_alone(tmp_path, collection, frame_cache, tiny, trained):
    config = load_config(overrides=[*tiny, "classifier.presence=drop"])
    run = train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    mine, plain = ((one / "metrics.jsonl").read_text(encoding="utf-8").splitlines() for one in (run, trained))
    first = sum('"epoch": 0' in line and '"classifier"' in line for line in plain)
    assert first > 0
    assert mine[:first] == plain[:first]
    presences = load_file(run / "classifier" / "halfway.safetensors")["presence"]
    assert len(presences) == sum(len(clip) for clip in open_run(run).clips("train"))
    assert not (trained / "classifier" / "halfway.safetensors").exists()
