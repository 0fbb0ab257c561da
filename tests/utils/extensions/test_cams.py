"""A CAM that nobody at colocam has thought of: Score-CAM, which needs further passes of the classifier."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchcam import methods as torchcam

from colocam import evaluate
from colocam.cams import CAMS, Cam, CamInputs, CamSource, ExternalCam, extract, gradcam, min_max
from colocam.config import load_config
from colocam.data.augment import whole
from colocam.models import Classifier
from colocam.run import open_run


def score_cam(seen: CamInputs) -> torch.Tensor:
    """Score-CAM (Wang et al., 2020): a channel counts by the class's logit in a frame that is masked by it."""
    features, size = seen.features[-1], seen.frames.shape[2:]
    scores = []
    for channel in features.unbind(1):
        mask = F.interpolate(min_max(channel)[:, None], size=size, mode="bilinear")
        logits = seen.classifier.logits(seen.frames * mask)
        scores.append(logits.gather(1, seen.classes[:, None])[:, 0])
    return gradcam(features, torch.stack(scores, dim=1).softmax(dim=1))


def autograd_cam(seen: CamInputs) -> torch.Tensor:
    """LayerCAM of an earlier layer, whose gradient only autograd knows."""
    with torch.enable_grad():
        features = seen.classifier.encoder(seen.frames.clone().requires_grad_())
        score = seen.classifier.read(features[-1]).gather(1, seen.classes[:, None]).sum()
        (gradient,) = torch.autograd.grad(score, features[-2])
    return (gradient.clamp(min=0) * features[-2]).sum(1).clamp(min=0)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(CAMS, "score-cam", Cam("Score-CAM", score_cam))
    monkeypatch.setitem(CAMS, "earlier", Cam("Earlier LayerCAM", autograd_cam))


class Hooked(nn.Module):
    """A classifier whose feature maps pass through layers that torch-cam can find."""

    def __init__(self, classifier):
        super().__init__()
        self.encoder, self.head = classifier.encoder, classifier.head
        self.earlier, self.last = nn.Identity(), nn.Identity()

    def forward(self, frames):
        features = self.encoder(frames)
        return self.head(self.last(features[-1]).mean((2, 3)))


@pytest.fixture
def classifier(tiny):
    torch.manual_seed(0)
    classifier = Classifier(load_config(overrides=tiny).backbone, 3)
    classifier.train()(torch.rand(8, 3, 32, 32) * 255)  # statistics of batch norms that are not those of an identity
    return classifier.eval()


@pytest.mark.usefixtures("registered")
def test_score_cam_is_that_of_torch_cam(classifier):
    frames, classes = torch.rand(3, 3, 32, 32) * 255, torch.tensor([2, 0, 1])
    model = Hooked(classifier).eval()
    with torchcam.ScoreCAM(model, "last", input_shape=(3, 32, 32)) as extractor, torch.no_grad():
        (expected,) = extractor(classes.tolist(), model(frames), normalized=False)
    found = extract("score-cam", classifier, frames, classes)
    assert min_max(found).amax() == 1
    torch.testing.assert_close(min_max(found), min_max(expected), rtol=0, atol=1e-4)


@pytest.mark.usefixtures("registered")
def test_seeds_and_evaluation(fit, collection, colocam):
    folder = fit("cam=score-cam", boxes=collection.truth)
    run = open_run(folder, "cpu")
    clip = run.clips("train")[0]
    frames = whole(torch.from_numpy(clip.frames[:2].copy()).permute(0, 3, 1, 2), 32)
    classes = torch.full((2,), run.catalogue.tags.index(clip.clip.tag))
    seeds_from = np.load(folder / "classifier" / "cams.npy")[:2].astype(np.float32)
    expected = min_max(extract("score-cam", run.classifier("cam"), frames, classes))
    np.testing.assert_allclose(seeds_from, expected.numpy(), atol=2e-3)
    source = json.loads((folder / "classifier" / "cams.json").read_text(encoding="utf-8"))["source"]
    assert source["function"].endswith("score_cam")
    outcome = colocam("evaluate", folder, "--boxes", collection.truth, "--cams", "score-cam,earlier,layercam")
    assert outcome.code == 0
    for title in ("Score-CAM", "Earlier LayerCAM", "LayerCAM", "CoLo-CAM"):
        assert title in outcome.out


def test_maps_of_another_model(monkeypatch, fit, collection):
    """A source that never looks at the classifier: how green a pixel is."""

    def opened(config, tags, device):
        shade = config.seed + len(tags)
        return CamSource(lambda frames, _: frames[:, 1].to(device) + shade, lambda: {"method": "green", "shade": shade})

    monkeypatch.setitem(CAMS, "green", ExternalCam("Green", opened))
    run = fit("cam=green", "localizer.epochs=1")
    assert np.load(run / "classifier" / "cams.npy").shape[1:] == (32, 32)
    evaluate(run, collection.truth, cams=["layercam", "green"])
    evaluation = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["methods"]
    assert list(evaluation)[:3] == ["green", "layercam", "colocam"]  # the source of the seeds first
