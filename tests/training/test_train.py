"""Training as a whole: what a run folder holds, that it depends on what it should, and that something is learned."""

import json
import shutil
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

import colocam
from colocam.cams import extract, min_max
from colocam.config import load_config
from colocam.data.augment import whole
from colocam.errors import ColocamError
from colocam.evaluation.run_evaluation import evaluate
from colocam.inference import Localizer
from colocam.models import Encoder, foreground
from colocam.models.model_file import load_model
from colocam.run import open_run
from colocam.training import train
from colocam.video.fence import decode
from tests.helpers.run_files import journal


@pytest.fixture
def fit(train_into, tmp_path):
    """``fit(override, …)`` trains on the collection into ``tmp_path/run``."""
    return partial(train_into, tmp_path / "run")


def test_what_a_run_folder_holds(trained):
    files = {str(path.relative_to(trained)) for path in trained.rglob("*") if path.is_file()}
    assert {"config.yaml", "environment.json", "data.json", "metrics.jsonl", "model.json", "model.safetensors"} <= files
    for phase in ("classifier", "colocam", "fcam"):
        assert {f"{phase}/best.json", f"{phase}/last.json"} <= files
        for name in ("best", "last"):
            state = json.loads((trained / phase / f"{name}.json").read_text(encoding="utf-8"))
            assert load_file(trained / phase / state["weights"])
    assert sum(name.endswith(".safetensors") for name in files) == 8  # two of each phase, two models
    assert not [name for name in files if ".tmp" in name]
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    assert config["seed"] == 0
    assert config["methods"] == ["colocam", "fcam"]
    assert config["localizer"]["losses"]["divisor"] == "affinity"  # also what nobody set is written down
    card, best = (json.loads((trained / name).read_text()) for name in ("model.json", "colocam/best.json"))
    assert (card["threshold_from"], card["threshold"]) == ("tags-only", best["threshold"])
    assert best["epoch"] == 1  # without boxes, the last one
    environment = json.loads((trained / "environment.json").read_text(encoding="utf-8"))
    assert environment["packages"]["torch"]
    assert environment["seed"] == 0


def test_training_reads_no_test_video_and_no_box(trained, collection, tmp_path, tiny):
    """Without the test videos' files and without the table of boxes, the very same model comes out."""
    shutil.copytree(collection.videos, tmp_path / "videos")
    for path in (tmp_path / "videos").rglob("test-*.mp4"):
        path.write_bytes(b"")
    shutil.copy(collection.manifest, tmp_path / "manifest.csv")
    config = load_config(overrides=[*tiny, "methods=[colocam, fcam]"])
    run = train(tmp_path / "manifest.csv", tmp_path / "run", config)
    assert (run / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    assert (run / "model.json").read_bytes() == (trained / "model.json").read_bytes()


def test_maps_can_be_looked_at_after_each_epoch(fit, trained):
    """The last maps are those of the model that is saved, and looking at them changes nothing."""
    seen = []
    frames, classes = torch.randint(0, 256, (2, 3, 32, 32), generator=torch.manual_seed(0)), torch.tensor([0, 1])

    def look(phase, epoch, mapper):
        with torch.inference_mode():
            seen.append((phase, epoch, mapper.draw(frames, classes)[0].clone()))

    run = fit(after_epoch=look)
    assert [(phase, epoch) for phase, epoch, _ in seen] == [(p, e) for p in ("classifier", "colocam") for e in (0, 1)]
    assert not torch.equal(seen[2][2], seen[3][2])
    net = load_model(run).net.eval()
    with torch.inference_mode():
        expected = foreground(net.maps(frames)[0])
    assert torch.allclose(seen[3][2], expected, atol=0.01)  # the file has 16 bits
    assert (run / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_seeds_decide(fit, trained):
    other = fit("seed=1")
    assert (other / "model.safetensors").read_bytes() != (trained / "model.safetensors").read_bytes()
    assert journal(other)[0]["loss"] != journal(trained)[0]["loss"]


def test_methods_do_not_disturb_each_other(fit, trained):
    """F-CAM alone is F-CAM after CoLo-CAM; the first method is the run's model."""
    run = fit("methods=[fcam]")
    assert (run / "model.safetensors").read_bytes() == (trained / "fcam" / "model.safetensors").read_bytes()
    assert json.loads((run / "model.json").read_text(encoding="utf-8"))["method"] == "fcam"


def test_any_cam_may_be_the_source_of_the_seeds(fit, collection):
    run = fit("cam=gradcam++", "localizer.epochs=1", boxes=collection.truth)
    stored = json.loads((run / "classifier" / "cams.json").read_text(encoding="utf-8"))
    assert stored["source"]["method"] == "gradcam++"
    opened = open_run(run, "cpu")
    clip = opened.clips("train")[0]
    frames = whole(torch.from_numpy(clip.frames[:2].copy()).permute(0, 3, 1, 2), 32)
    classes = torch.full((2,), opened.catalogue.tags.index(clip.clip.tag))
    expected = min_max(extract("gradcam++", opened.classifier("cam"), frames, classes))
    found = np.load(run / "classifier" / "cams.npy")[:2].astype(np.float32)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-3)
    lines = [line for line in journal(run) if line["event"] == "val" and line["phase"] == "classifier"]
    chosen = json.loads((run / "classifier" / "cam.json").read_text(encoding="utf-8"))
    assert chosen["corloc"] == pytest.approx(max(line["corloc"] for line in lines), rel=1e-4)
    assert list(evaluate(run, collection.truth).methods) == ["gradcam++", "colocam"]
    with pytest.raises(ColocamError, match=r"a different configuration \(cam: gradcam\+\+ there, layercam now\)"):
        fit("localizer.epochs=1", boxes=collection.truth)


def test_boxes_of_validation_videos_choose(fit, collection, trained):
    run = fit(boxes=collection.truth)
    card = json.loads((run / "model.json").read_text(encoding="utf-8"))
    assert card["threshold_from"] == "validation"
    lines = [line for line in journal(run) if line["event"] == "val" and line["phase"] == "colocam"]
    chosen = json.loads((run / "colocam" / "best.json").read_text(encoding="utf-8"))
    assert chosen["corloc"] == pytest.approx(max(line["corloc"] for line in lines), rel=1e-4)
    assert chosen["threshold"] == card["threshold"]
    assert (run / "classifier" / "cam.json").is_file()
    # boxes choose; they teach nothing: the classifier learns the same
    mine, theirs = (
        [line["loss"] for line in journal(r) if line["phase"] == "classifier" and line["event"] == "train"]
        for r in (run, trained)
    )
    assert mine == theirs


def test_boxes_that_belong_to_no_validation_video(fit, tmp_path):
    table = tmp_path / "boxes.csv"
    table.write_text("clip,frame,present,x1,y1,x2,y2\nbus/train-0,1,1,2,2,9,9\n", encoding="utf-8")
    with pytest.raises(ColocamError, match="the boxes match no frame of a validation video"):
        fit(boxes=table)


def test_a_manifest_without_validation(fit, collection, tmp_path):
    lines = collection.manifest.read_text(encoding="utf-8").replace("videos/", f"{collection.videos}/").splitlines()
    table = tmp_path / "manifest.csv"
    table.write_text("\n".join(line for line in lines if ",val," not in line), encoding="utf-8")
    with pytest.raises(ColocamError, match="no validation video"):
        fit(source=table)


def test_folders_of_pictures_train_like_videos(tmp_path, collection, tiny):
    for path in collection.videos.rglob("*.mp4"):
        folder = tmp_path / "pictures" / path.parent.name / path.stem
        folder.mkdir(parents=True)
        for frame in decode(path):
            cv2.imwrite(str(folder / f"frame{frame.index}.png"), np.ascontiguousarray(frame.image[..., ::-1]))
    run = colocam.train(tmp_path / "pictures", tmp_path / "run", load_config(overrides=[*tiny, "localizer.epochs=1"]))
    assert Localizer.load(run).tags == ("bus", "cat", "owl")
    data = json.loads((run / "data.json").read_text(encoding="utf-8"))
    assert {len(clip["frames"]) for clip in data["clips"]} == {5}
    assert {clip["split"] for clip in data["clips"]} == {"train", "val"}


def test_relative_and_absolute_names_are_one_run(fit, collection, tmp_path, monkeypatch):
    monkeypatch.chdir(collection.manifest.parent)
    run = fit("localizer.epochs=1", source=Path(collection.manifest.name))
    before = (run / "model.safetensors").read_bytes()
    monkeypatch.chdir(tmp_path)
    fit("localizer.epochs=1")
    assert (run / "model.safetensors").read_bytes() == before


def test_something_is_learned(fit, collection):
    """Colored squares on gray noise, 16 of 48×40 pixels: the box of a whole frame, or of noise, is never right."""
    longer = ["classifier.epochs=12", "classifier.batch=10", "classifier.frames_per_clip=5", "classifier.lr=0.2"]
    run = fit(*longer, "classifier.jitter=0", "localizer.epochs=8", "methods=[fcam]")
    steps = [line for line in journal(run) if line["event"] == "train"]
    for phase, term in (("classifier", "cross_entropy"), ("fcam", "seeds")):
        losses = [line[term] for line in steps if line["phase"] == phase]
        assert np.mean(losses[-6:]) < np.mean(losses[:6])
    result = evaluate(run, collection.truth)
    assert result.classification.accuracy >= 90
    assert result.methods["fcam"]["oracle-global"].average >= 25


def test_sgd_trains_the_class_at_the_size_that_it_is_read_at(fit, monkeypatch):
    sides = []
    plain = Encoder.forward

    def noted(encoder, frames):
        if encoder.training:
            sides.append(frames.shape[-1])
        return plain(encoder, frames)

    monkeypatch.setattr(Encoder, "forward", noted)
    run = fit("classifier.size=16", "methods=[]")
    assert set(sides) == {16}
    classifier = open_run(run).classifier()
    assert (classifier.size, classifier.normalize) == (16, False)
    assert np.load(run / "classifier" / "cams.npy").shape[1:] == (4, 4)  # of the frames' 32 pixels
