"""Learning from corrections with a trained run: what it writes, what it keeps, and what it leaves out."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from colocam import evaluate
from colocam.config.card import parse_card
from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.labels import Correction, read_corrections, write_corrections
from colocam.labels.labeled_videos import LeftOut
from colocam.models.model_file import Model, load_model
from colocam.run import open_run
from colocam.training.learning import frames as learn_frames
from colocam.training.learning import lesson as module
from colocam.training.learning.card import QuickLearner, agreement, observe
from colocam.training.learning.frames import HALF_LIFE, corrected_frames, held_out_videos
from colocam.training.learning.lesson import Learning, learn, learning_without
from colocam.types import Box
from colocam.utils.digests import file_digest
from tests.helpers.lessons import add_crop_head, of_truth, read_class_in_map
from tests.helpers.run_files import journal

PARTS_BUT_HEAD = ("seeds", "projection", "threshold", "presence")


@pytest.fixture(scope="module")
def corrections(trained, collection, tmp_path_factory):
    path = tmp_path_factory.mktemp("corrections") / "mine.csv"
    return write_corrections(path, of_truth(trained, collection, "val", "train"))


@pytest.fixture(scope="module")
def learned(trained, corrections, tmp_path_factory):
    return learn(trained, [corrections], tmp_path_factory.mktemp("learned") / "new", Learning(steps=6))


def test_the_new_run_is_a_run(learned, trained, corrections, collection, tmp_path, make_video, square_video):
    folder = learned.folder
    told = json.loads((folder / "learning.json").read_text())
    assert told["corrections"] == [{"file": "0001-mine.csv", "sha256": file_digest(corrections)}]
    assert file_digest(folder / "corrections" / "0001-mine.csv") == file_digest(corrections)
    assert told["from"]["model"] == file_digest(trained / "model.safetensors")
    names = [stage["name"] for stage in told["stages"]]
    assert names == ["before", "threshold", "presence", "decoder"]
    kept = [stage.agreement.iou for stage in learned.stages if stage.kept]
    assert kept == sorted(kept)
    held = set(told["held_out"]["videos"])
    assert len(held) == 3  # of nine
    assert not held & set(told["learned"]["videos"])
    card = load_model(folder).card
    assert card.method == "colocam"
    result = evaluate(folder, collection.truth)
    own = result.methods["colocam"]["tags-only"].threshold
    if card.class_thresholds is not None and len(set(card.class_thresholds)) > 1:
        assert own == pytest.approx(dict(zip(card.tags, card.class_thresholds, strict=True)))
    video = make_video(tmp_path / "video.mp4", square_video("cat", 5, 6)[0])
    assert len(list(Localizer.load(folder)(video))) == 6


def test_the_old_model_stays_if_the_new_one_agrees_less(trained, corrections, tmp_path, monkeypatch):
    """A step that ruins the decoder is not kept, and the model is written as it was."""

    def ruined(*_, **__):
        model = load_model(trained)
        for weight in model.net.decoder.parameters():
            weight.data.zero_()
        return model

    monkeypatch.setattr(module, "with_decoder", ruined)
    how, original = learning_without("threshold", "presence"), load_model(trained)
    learned = learn(trained, [corrections], tmp_path / "new", how)
    assert learned.kept == []
    assert learned.lines()[-1].endswith("the old model stays")
    new = load_model(tmp_path / "new")
    assert new.card == original.card
    for name, weight in original.net.state_dict().items():
        assert bool((new.net.state_dict()[name] == weight).all())


def test_a_decoder_is_compared_with_thresholds_of_its_own(trained, corrections, tmp_path, monkeypatch):
    """Maps whose scale has changed find nothing at the old threshold, but they are as good as before."""

    def fainter(*_, **__):
        model = load_model(trained)
        model.net.decoder.head.bias.data[1] -= 1.5
        return model

    monkeypatch.setattr(module, "with_decoder", fainter)
    learned = learn(trained, [corrections], tmp_path / "new", learning_without("presence"))
    run, model = open_run(trained), fainter()
    frames = corrected_frames(run, read_corrections(corrections), LeftOut())
    held = frames.held_out
    seen = observe(model, frames, run.config.frames, run.device).part(held)
    at_old = agreement(model.card, seen, frames.part(held))
    before, *_, decoder = [stage.agreement for stage in learned.stages]
    assert at_old.iou < before.iou
    assert decoder.iou > at_old.iou


@pytest.mark.parametrize("rounds", [1, 2])
def test_learning_uses_the_terms_of_the_last_round(own_run, corrections, tmp_path, rounds):
    """The CRF, size and color terms complete sparse seeds; the last of several rounds was trained without them.

    Replay of the old maps goes with the sparse seeds. After several rounds a second lesson has labels from own boxes.
    """
    text = (own_run / "config.yaml").read_text()
    assert "rounds: 1" in text
    (own_run / "config.yaml").write_text(text.replace("rounds: 1", f"rounds: {rounds}"))
    how = Learning(threshold=False, presence=False, steps=1)
    learn(own_run, [corrections], tmp_path / "new", how)
    steps = [line for line in journal(tmp_path / "new") if line["event"] == "train"]
    assert len(steps) == rounds
    sparse = {"crf", "size", "coloc", "replay"}
    for step in steps:
        assert {"seeds", "projection"} <= step.keys()
        assert sparse & step.keys() == (sparse if rounds == 1 else set())


def test_what_was_learned_from_before_is_used_again(learned, trained, collection, tmp_path):
    more = write_corrections(tmp_path / "more.csv", of_truth(trained, collection, "test")[:3])
    before = json.loads((learned.folder / "learning.json").read_text())
    again = learn(learned.folder, [more], tmp_path / "again", learning_without("seeds", "projection"))
    told = json.loads((again.folder / "learning.json").read_text())
    assert [one["file"] for one in told["corrections"]] == ["0001-mine.csv", "0002-more.csv"]
    assert set(before["held_out"]["videos"]) <= set(told["held_out"]["videos"])
    assert again.frames == learned.frames + 3


def test_videos_that_are_not_in_the_run_are_read_from_their_files(trained, tmp_path, make_video, square_video):
    pictures, boxes = square_video("owl", 7, 6)
    video = make_video(tmp_path / "video.mp4", pictures)
    made = [Correction("video", 0, None, "none", "", (), path=str(video))]  # its class is that of the other one
    made.append(Correction("video", 3, None, "box", "owl", (Box(*boxes[3]),), path=str(video)))
    left_out = LeftOut()
    frames = corrected_frames(open_run(trained), made, left_out)
    (_, first), (clip, second) = frames.samples.where()
    assert (clip.clip.path, first, second) == (video, 0, 3)
    assert {open_run(trained).catalogue.tags[tag] for tag in frames.classes} == {"owl"}
    assert clip.index.tolist() == [0, 1, 2, 3, 4, 5]  # with their neighbors
    assert frames.present.tolist() == [False, True]
    scale = np.array([48, 40, 48, 40]) / open_run(trained).config.frames.map_side
    np.testing.assert_allclose(frames.boxes[1][0] * scale, boxes[3], atol=1e-4)
    assert not left_out


def test_the_file_that_a_correction_names_counts_more_than_a_name(trained, tmp_path, make_video, square_video):
    """Another video of the same name is another video; a copy of the run's own is the run's own."""
    run = open_run(trained)
    own = run.catalogue.clips[0]
    namesake = make_video(tmp_path / own.path.name, square_video("owl", 7, 6)[0])
    copy = shutil.copyfile(own.path, tmp_path / f"copy{own.path.suffix}")
    for path, expected in ((namesake, namesake), (copy, own.path), (tmp_path / "gone.mp4", own.path)):
        made = [Correction(own.name, 0, None, "box", own.tag, (Box(1, 2, 30, 30),), path=str(path))]
        ((clip, _),) = corrected_frames(run, made, LeftOut()).samples.where()
        assert clip.clip.path == expected
        assert (clip.clip in run.catalogue.clips) == (expected == own.path)


def test_a_frame_with_boxes_of_two_classes_teaches_one(trained, collection, tmp_path, make_video, square_video):
    """That of its clip where it has a box, else the first; the boxes of the other are counted as left out."""
    run = open_run(trained)
    one = next(one for one in of_truth(trained, collection, "val") if one.kind == "box")
    other = next(tag for tag in run.catalogue.tags if tag != one.tag)
    video = str(make_video(tmp_path / "video.mp4", square_video("owl", 7, 6)[0]))
    both = [replace(one, tag=other, boxes=(Box(1, 1, 5, 5), Box(2, 2, 9, 9))), one]
    for kind in ("box", "class"):
        for place in ({}, {"video": "video", "path": video}):
            left_out = LeftOut()
            made = [replace(correction, **place) for correction in (replace(both[0], kind=kind), both[1])]
            frames = corrected_frames(run, made, left_out)
            tag = other if place else one.tag
            assert [run.catalogue.tags[index] for index in frames.classes] == [tag]
            assert len(frames.boxes[0]) == len(both[0 if place else 1].boxes)
            assert frames.changed.tolist() == [bool(place) and kind == "class"]
            (reason,) = left_out
            assert repr(one.tag if place else other) in reason


def test_nonsense_is_named_counted_and_left_out(trained, collection, tmp_path):
    good = of_truth(trained, collection, "val")[:2]
    bad = [
        Correction("nowhere", 0, None, "box", "cat", (Box(1, 2, 3, 4),)),
        Correction("gone", 0, None, "box", "cat", (Box(1, 2, 3, 4),), path=str(tmp_path / "gone.mp4")),
        Correction(good[0].video, 0, None, "box", "unicorn", (Box(1, 2, 3, 4),)),
        Correction(good[0].video, 999, None, "none", "", ()),
    ]
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    bad.append(Correction("broken", 0, None, "none", "", (), path=str(tmp_path / "broken.mp4")))
    left_out = LeftOut()
    frames = corrected_frames(open_run(trained), good + bad, left_out)
    assert len(frames) == 2
    assert sorted(left_out.values()) == [1] * 5
    assert any("class 'unicorn' is unknown" in reason for reason in left_out)
    assert any("has no frame 999" in reason for reason in left_out)
    path = write_corrections(tmp_path / "bad.csv", bad[:1])
    with pytest.raises(ColocamError, match="none of the corrected frames can be used: correction of 'nowhere'"):
        learn(trained, [path], tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(ColocamError, match="full exists"):
        learn(trained, [path], tmp_path / "full")


def test_frames_between_key_frames_count_less_with_their_distance(trained, collection):
    made = [one for one in of_truth(trained, collection, "val") if one.kind == "box"]
    video = made[0].video
    own = [one for one in made if one.video == video]
    unsure = [replace(one, key=index == 0) for index, one in enumerate(own)]
    frames = corrected_frames(open_run(trained), unsure, LeftOut())
    clip = frames.samples.clips[0]
    first = clip.pts[int(np.searchsorted(clip.index, own[0].frame))]
    away = abs(clip.pts[frames.samples.indices.frames.numpy()] - first)
    np.testing.assert_allclose(frames.weights, 0.5 ** (away / HALF_LIFE))
    with pytest.raises(ColocamError, match="no frame was set or checked"):
        corrected_frames(open_run(trained), unsure[1:], LeftOut())


def test_the_tag_of_a_clip_counts_more_than_a_predicted_class(trained, collection):
    """An accepted box repeats what the model took the object for; only a changed class says otherwise."""
    one = next(one for one in of_truth(trained, collection, "val") if one.kind == "box")
    other = next(tag for tag in open_run(trained).catalogue.tags if tag != one.tag)
    for kind, tag in (("accepted", one.tag), ("box", one.tag), ("class", other)):
        frames = corrected_frames(open_run(trained), [replace(one, kind=kind, tag=other)], LeftOut())
        assert open_run(trained).catalogue.tags[frames.classes[0]] == tag


@pytest.mark.parametrize("reading", ["whole frames", "crops", "maps"])
def test_corrected_classes_change_the_head_that_names_the_class(own_run, collection, tmp_path, reading):
    """All corrected frames are said to be birds; the head of whole frames stays as it is beside one of crops."""
    crop_head = reading == "crops"
    if crop_head:
        add_crop_head(own_run)
    elif reading == "maps":
        read_class_in_map(own_run)
    made = [one for one in of_truth(own_run, collection, "val", "train") if one.kind == "box"]
    changed = [replace(one, kind="class", tag=load_model(own_run).card.tags[0]) for one in made]
    path, how = write_corrections(tmp_path / "changed.csv", changed), learning_without(*PARTS_BUT_HEAD)
    learned = learn(own_run, [path], tmp_path / "new", how)
    assert [stage.name for stage in learned.stages] == ["before", "head"]
    assert learned.kept == ["head"]
    before, after = load_model(own_run).net, load_model(tmp_path / "new").net
    assert after.class_in_map == (reading == "maps")
    named = (lambda net: net.crop_head) if crop_head else (lambda net: net.classifier.head)
    assert named(after).bias[0] > named(before).bias[0]
    if crop_head:
        assert torch.equal(after.classifier.head.bias, before.classifier.head.bias)
    else:
        stored = open_run(tmp_path / "new").classifier().head.bias
        torch.testing.assert_close(after.classifier.head.bias, stored.cpu(), rtol=0, atol=1e-6)


def test_clips_whose_class_was_corrected_are_not_replayed_with_their_old_tag(
    trained, collection, tmp_path, monkeypatch
):
    one = next(one for one in of_truth(trained, collection, "train") if one.kind == "box")
    other = next(tag for tag in open_run(trained).catalogue.tags if tag != one.tag)
    path = write_corrections(tmp_path / "changed.csv", [replace(one, kind="class", tag=other)])
    replayed, refit = [], module.fit_heads

    def watched(net, corrected, samples, *rest, **more):
        replayed.extend(clip.clip.name for clip, _ in samples.where())
        return refit(net, corrected, samples, *rest, **more)

    monkeypatch.setattr(module, "fit_heads", watched)
    learn(trained, [path], tmp_path / "new", learning_without(*PARTS_BUT_HEAD))
    names = {clip.name for clip in open_run(trained).catalogue.of("train")}
    assert one.video in names
    assert set(replayed) == names - {one.video}


def test_thresholds_at_once_agree_better_with_all_corrections(trained, corrections):
    quick = QuickLearner(trained)
    read = read_corrections(corrections)
    first = quick(read[:10])
    card = quick(read)
    assert card.threshold_from == first.threshold_from == "corrections"
    assert card.class_thresholds is None
    assert card == QuickLearner(trained)(read)  # what was seen before changes nothing
    run = open_run(trained)
    frames = corrected_frames(run, read, LeftOut())
    seen = observe(load_model(trained), frames, run.config.frames, run.device)
    old, new = (agreement(one, seen, frames) for one in (load_model(trained).card, card))
    assert new.iou >= old.iou


def test_maps_seen_before_are_seen_anew_where_other_corrected_frames_complete_them(trained, collection):
    """With the color mean "clip", a map depends on the other frames that it is computed with."""
    quick = QuickLearner(trained)
    quick.model = Model(quick.model.net, quick.model.card.model_copy(update={"color_mean": "clip"}))
    made = [one for one in of_truth(trained, collection, "val") if one.kind == "box"]
    own = [one for one in made if one.video == made[0].video]
    assert len(own) > 2
    for some in (own[:1], own[1:], own):
        frames = corrected_frames(quick.run, some, LeftOut())
        # as few frames beside the corrected ones as in a long video
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learn_frames, "CONTEXT", 1)
            found = quick._observe(frames)
            expected = observe(quick.model, frames, quick.run.config.frames, quick.run.device)
        np.testing.assert_array_equal(found.levels, expected.levels)
        np.testing.assert_array_equal(found.right, expected.right)
    before = quick._observe(frames)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("colocam.training.learning.card.observe")  # the same corrections again need no network
        np.testing.assert_array_equal(quick._observe(frames).levels, before.levels)


def test_presence_that_held_out_frames_do_not_measure_is_not_kept(trained, collection, tmp_path):
    """The held-out videos show the object in every corrected frame; without any held-out video a warning says so."""
    made = of_truth(trained, collection, "train", "val")
    boxes = [one for one in made if one.kind == "box"]
    videos = sorted({one.video for one in boxes})
    held = held_out_videos(videos)
    absent = [replace(one, kind="none", tag="", boxes=()) for one in boxes if one.video not in held]
    told = [one for one in boxes if one.video in held] + absent[::2] + boxes[-1:]
    told = list({(one.video, one.frame): one for one in told}.values())
    how = Learning(threshold=False, head=False, seeds=False, projection=False)
    learned = learn(trained, [write_corrections(tmp_path / "a.csv", told)], tmp_path / "a", how)
    assert np.isnan(learned.stages[-1].agreement.presence_loss)
    assert learned.kept == []
    assert any("presence" in line and line.endswith("not measured, not kept") for line in learned.lines())
    assert load_model(tmp_path / "a").card.presence == load_model(trained).card.presence
    alone = [one for one in (*absent[::2], *boxes) if one.video == absent[0].video]
    alone = list({one.frame: one for one in reversed(alone)}.values())
    learned = learn(trained, [write_corrections(tmp_path / "b.csv", alone)], tmp_path / "b", how)
    assert learned.kept == ["presence"]
    assert learned.proof.verdict == "too few"


def test_class_thresholds_are_those_of_single_thresholds(trained, own_run, tmp_path, make_video, square_video):
    """A model with one threshold per class finds the boxes that --threshold gives for the class."""
    card = json.loads((own_run / "model.json").read_text())
    taus = [0.2, 0.4, 0.6]
    (own_run / "model.json").write_text(json.dumps(card | {"class_thresholds": taus}))
    video = make_video(tmp_path / "video.mp4", square_video("cat", 5, 6)[0])
    for tag, tau in zip(card["tags"], taus, strict=True):
        for smooth in ("offline", "none"):
            own = [one.box for one in Localizer.load(own_run, tag=tag, smooth=smooth)(video)]
            given = [one.box for one in Localizer.load(trained, tag=tag, threshold=tau, smooth=smooth)(video)]
            assert own == given
    found = list(Localizer.load(own_run)(video))
    tau = taus[card["tags"].index(found[0].tag)]
    assert [one.box for one in found] == [one.box for one in Localizer.load(trained, threshold=tau)(video)]
    with pytest.raises(ColocamError, match="class_thresholds has 2 values for 3 tags"):
        parse_card(json.dumps(card | {"class_thresholds": taus[:2]}), "model.json")


def test_the_command(trained, corrections, tmp_path, colocam):
    out = tmp_path / "new"
    done = colocam("learn", trained, corrections, "-o", out, "--steps", 0, "--without", "presence")
    assert done.code == 0, done.err
    assert "corrections to learn from" in done.err
    assert f"wrote {out}" in done.err
    assert colocam("learn", trained, corrections, "-o", out).error.endswith("exists: choose another folder")
    wrong = colocam("learn", trained, corrections, "-o", tmp_path / "a", "--without", "tresholds").error
    assert wrong == "error: --without must be a part, got 'tresholds': did you mean 'threshold'?"
