"""Training that starts from a trained model: its network, its decoder, and what is refused."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from colocam.boxes import to_8bit
from colocam.boxes.extract import largest_boxes
from colocam.boxes.iou import iou
from colocam.cli import main
from colocam.cli.ready_models import DEFAULT, find_model
from colocam.config import load_config
from colocam.errors import ColocamError, InterruptedRunError
from colocam.evaluation.run_evaluation import methods_of_run
from colocam.inference.network import open_onnx
from colocam.models import foreground
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training import keep_start, own_labels
from colocam.training.keep_start import FAMILIAR, MARGIN, Likelihood
from colocam.training.start import adopted, default_preset, start_folder

ROOT = Path(__file__).parents[2]
READY = ROOT / "models" / DEFAULT
MOST_BYTES = 25_000_000


def frames_of_the_readme(side):
    """(4, side, side, 3): the frames in the picture of the README, whose lower row has heat maps."""
    picture = Image.open(ROOT / "docs/images/readme.jpg").convert("RGB")
    width, height = picture.width // 4, picture.height // 2
    tiles = [picture.crop((index * width, 0, (index + 1) * width, height)) for index in range(4)]
    return np.stack([np.asarray(tile.resize((side, side), Image.Resampling.BOX)) for tile in tiles])


def test_the_ready_run_computes_what_the_ready_file_computes():
    network, card = open_onnx(find_model(DEFAULT))
    model = load_model(READY)
    assert model.card == card
    frames = frames_of_the_readme(card.size)
    logits, maps, peaks, _ = network.submit([frames], np.zeros((len(frames), 2), np.int64)).result()[:4]
    with torch.inference_mode():
        ours = model.net(torch.from_numpy(frames).permute(0, 3, 1, 2))
    assert np.allclose(logits, ours.class_logits, atol=0.1)  # the maps of the file weigh the features in 8 bits
    assert np.allclose(peaks, ours.peaks, rtol=0.02, atol=0.05)
    both = [to_8bit(torch.as_tensor(part)).numpy() for part in (maps, foreground(ours.map_logits))]
    first, second = (largest_boxes(part, card.threshold)[0].astype(np.float64) for part in both)
    overlaps = np.array([float(iou(a, b)) for a, b in zip(first, second, strict=True)])
    assert overlaps.mean() >= 0.95  # 8 bits move an edge by a pixel: 0.991 on every 12th frame of 12 real shots


def test_the_ready_run_is_small_and_opens_as_a_run():
    files = [path for path in READY.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    run = open_run(READY)
    assert run.catalogue.tags == load_model(READY).card.tags
    assert run.config.frames.crop == load_model(READY).card.size


def test_a_decoder_in_training_mode_starts_from_what_it_computed():
    """Its batch norms have statistics of training frames: with others, the first step would undo the decoder."""
    net, frames = load_model(READY).net, torch.from_numpy(frames_of_the_readme(256)).permute(0, 3, 1, 2)
    with torch.no_grad():
        before = foreground(net.maps(frames)[0])
        after = foreground(net.train().maps(frames)[0])
    assert float((before - after).abs().mean()) < 0.1


@pytest.fixture
def started(own_run, collection, frame_cache):
    """``started(out, word, …)`` runs ``colocam train --from`` the tiny run; gives its exit code."""

    def run(out, *words):
        command = ["train", collection.manifest, "--out", out, "--from", own_run, "--frames", frame_cache]
        small = ("classifier.views=1", "localizer.epochs=1", "localizer.sequences_per_clip=1", "localizer.batch=8")
        with pytest.MonkeyPatch.context() as patch:
            sets = [word for change in small for word in ("--set", change)]
            patch.setattr("sys.argv", ["colocam", *map(str, [*command, *sets, *words])])
            with pytest.raises(SystemExit) as stop:
                main()
        return stop.value.code or 0

    return run


def weights(run, part):
    return {name: value for name, value in load_model(run).net.state_dict().items() if name.startswith(part)}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("decoder", ["keep", "own", "train"])
def test_the_encoder_stays_and_the_decoder_as_told(started, own_run, tmp_path, capfd, decoder):
    out = tmp_path / "new"
    assert started(out, "--anyway", "--set", f"start.decoder={decoder}") == 0
    said = capfd.readouterr().err
    assert f"training starts from the model {own_run}" in said
    assert said.index("minutes for the class") < said.index("features")
    assert same(weights(own_run, "classifier.encoder"), weights(out, "classifier.encoder"))
    assert same(weights(own_run, "decoder"), weights(out, "decoder")) == (decoder == "keep")
    assert not same(weights(own_run, "classifier.head"), weights(out, "classifier.head"))
    assert (out / "picture.jpg").read_bytes()[:2] == b"\xff\xd8"
    assert (out / "colocam" / "own" / "labels.json").is_file() == (decoder == "own")
    if decoder != "train":
        old, new = load_model(own_run).card, load_model(out).card
        assert (new.threshold, new.chooser, new.focus) == (old.threshold, old.chooser, old.focus)
        assert new.threshold != load_config("laptop").localizer.threshold
        assert methods_of_run(open_run(out), [])[new.method].threshold == new.threshold  # what `evaluate` takes
        metrics = (out / "metrics.jsonl").read_bytes()
        assert started(out, "--anyway", "--set", f"start.decoder={decoder}") == 0  # nothing is left to do
        assert (out / "metrics.jsonl").read_bytes() == metrics


@pytest.mark.parametrize("after", [0.9, 1.1])
def test_a_decoder_keeps_its_old_weights_if_its_own_boxes_do_not_help(after, started, own_run, tmp_path, monkeypatch):
    """Held-out tags are unknown at first; then the boxes of the trained decoder show them better, or worse."""
    said = iter([1.0, 1.0, after] * 2)
    monkeypatch.setattr(keep_start, "likelihood", lambda *_: Likelihood(1.0, next(said), np.log(3)))
    out = tmp_path / "new"
    assert started(out, "--anyway") == 0
    assert (out / "colocam" / "own" / "labels.json").is_file()
    assert same(weights(own_run, "decoder"), weights(out, "decoder")) == (after > 1)
    assert load_model(out).card.threshold == load_model(own_run).card.threshold


def test_own_labels_that_were_interrupted_give_the_same_model(started, tmp_path, monkeypatch):
    runs, calls = [tmp_path / "undisturbed", tmp_path / "interrupted"], []
    own = "--anyway", "--set", "start.decoder=own"
    assert started(runs[0], *own) == 0

    def raise_once(what):
        calls.append(what)
        if len(calls) == 1:
            raise InterruptedRunError(what)

    monkeypatch.setattr(own_labels, "CLIPS", 1)
    monkeypatch.setattr(own_labels, "raise_if_stopped", raise_once)
    assert started(runs[1], *own) == 130
    assert not (runs[1] / "model.json").exists()
    assert started(runs[1], *own) == 0
    assert len(calls) > 1
    for name in ("model.safetensors", "model.json", "colocam/own/labels.npy"):
        assert (runs[0] / name).read_bytes() == (runs[1] / name).read_bytes()
    assert not (runs[0] / "classifier" / "cams.npy").exists()  # nothing reads them


def test_near_chance_it_stops_and_goes_on_anyway(started, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(import_module("colocam.training.train"), "NEAR", 2.0)  # any class is near chance
    out = tmp_path / "new"
    assert started(out, "--set", "start.decoder=keep") == 3
    said = capfd.readouterr().err
    assert "where chance is 33 %" in said
    assert "add --anyway to go on" in said
    assert not (out / "model.json").exists()
    assert started(out, "--set", "start.decoder=keep", "--anyway") == 0
    assert "warning: the class is right in" in capfd.readouterr().err
    assert (out / "model.json").is_file()


def test_the_network_and_its_sizes_are_those_of_the_start():
    config = adopted(load_config("laptop", overrides=["frames.crop=128", "localizer.decoder=[8, 8, 8]"]))
    card = load_model(READY).card
    assert (config.frames.crop, config.frames.map_size, config.localizer.decoder) == (256, 128, card.decoder)
    assert config.backbone == card.backbone
    assert adopted(load_config("demo")) == load_config("demo")


def test_a_start_is_a_run_a_ready_model_or_the_file_of_one(own_run, onnx_file):
    assert start_folder(str(own_run)) == own_run
    assert start_folder(DEFAULT).samefile(READY)
    assert start_folder(str(READY / f"{DEFAULT}.onnx")) == READY
    with pytest.raises(ColocamError, match="an ONNX file cannot be trained further"):
        start_folder(str(onnx_file))
    with pytest.raises(ColocamError, match=f"start.model nothing: no such model.*{DEFAULT}"):
        start_folder("nothing")


def test_the_tags_of_held_out_videos_decide_what_becomes_of_the_decoder():
    chance = np.log(10)
    known, whole = FAMILIAR * chance, FAMILIAR * chance - MARGIN / 2
    assert Likelihood(whole, known, chance).way == "keep"
    assert Likelihood(whole, known + 0.01, chance).way == "own"
    assert Likelihood(whole, whole + MARGIN + 0.01, chance).way == "train"  # however well the tags are known


def test_without_a_gpu_the_default_starts_from_the_ready_model():
    assert default_preset("cpu") == "laptop"
    config = load_config(default_preset("cpu"))
    assert config.start is not None
    assert config.start.model == DEFAULT


def test_the_old_name_of_the_preset_is_read(capfd):
    assert load_config("cpu") == load_config("demo")
    assert "the preset 'cpu' is now called 'demo'" in capfd.readouterr().err
