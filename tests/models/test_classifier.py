"""The classifier reads the class at its own size, and its head may take pooled features of norm 1."""

import copy

import pytest
import torch
import torch.nn.functional as F

from colocam.cams import extract
from colocam.config import load_config
from colocam.models import Classifier, LocalizerNet
from tests.helpers.batch_norms import unsettle

SIDE, SIZE = 96, 32


@pytest.fixture(scope="module")
def config(tiny):
    return load_config(overrides=tiny)


@pytest.fixture
def make(config):
    """``make(size=…, normalize=…)``: always the same weights."""

    def classifier(**settings):
        torch.manual_seed(3)
        return unsettle(Classifier(config.backbone, 4, **settings))

    return classifier


@pytest.fixture
def frames():
    return torch.randint(0, 256, (3, 3, SIDE, SIDE), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_the_class_is_that_of_the_frame_averaged_down(make, frames, normalize, dtype):
    small = F.interpolate(frames.double(), size=(SIZE, SIZE), mode="area").float()
    with torch.no_grad():
        found = make(size=SIZE, normalize=normalize)(frames.to(dtype))
        expected = make(normalize=normalize)
        torch.testing.assert_close(found.logits, expected(small).logits, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(found.logits, expected(frames).logits, atol=1e-3)
        for one, two in zip(found.features, expected.encoder(frames), strict=True):
            assert torch.equal(one, two)


@torch.no_grad()
@pytest.mark.parametrize("normalize", [False, True])
def test_the_head_takes_mean_features_or_those_of_norm_one(make, frames, normalize):
    classifier = make(normalize=normalize)
    last = classifier.encoder(frames)[-1]
    mean = last.double().mean((2, 3))
    weight, bias = classifier.head.weight.double(), classifier.head.bias.double()
    norm = mean.square().sum(1, keepdim=True).sqrt() if normalize else 1
    expected = mean / norm @ weight.T + bias
    torch.testing.assert_close(classifier(frames).logits.double(), expected, rtol=1e-5, atol=1e-5)
    assert classifier.read(torch.zeros_like(last)).isfinite().all()
    assert classifier.scaled(torch.zeros_like(last), torch.zeros_like(last)).isfinite().all()


@pytest.mark.parametrize("method", ["cam", "gradcam", "layercam", "gradcam++"])
def test_maps_are_the_definitions_by_autograd_at_the_size_of_the_frames(make, frames, method):
    """The logit of the head on the large features, with the norm held constant."""
    classes, classifier = torch.tensor([0, 3, 1]), make(size=SIZE, normalize=True)
    last = classifier.encoder(frames)[-1].detach().double().requires_grad_()
    norm = last.mean((2, 3)).norm(dim=1, keepdim=True).detach()
    head = copy.deepcopy(classifier.head).double()
    score = head(last.mean((2, 3)) / norm).gather(1, classes[:, None])
    (gradient,) = torch.autograd.grad(score.sum(), last)
    expected = {
        "cam": lambda: (gradient * last).sum(1) * last[0, 0].numel(),
        "gradcam": lambda: (gradient.mean((2, 3), keepdim=True) * last).sum(1).clamp(min=0),
        "layercam": lambda: (gradient.clamp(min=0) * last).sum(1).clamp(min=0),
        "gradcam++": lambda: _gradcam_pp(last, gradient),
    }[method]()
    found = extract(method, classifier, frames.float(), classes)
    torch.testing.assert_close(found.double(), expected.detach(), rtol=1e-4, atol=1e-6)


def _gradcam_pp(last, gradient):
    """α = g² / (2g² + g³ Σ A), ω = Σ α ReLU(g)."""
    alpha = gradient**2 / (2 * gradient**2 + gradient**3 * last.sum((2, 3), keepdim=True))
    weights = (alpha * gradient.clamp(min=0)).sum((2, 3), keepdim=True)
    return (weights * last).sum(1).clamp(min=0)


@torch.no_grad()
def test_peaks_are_those_of_the_cam_that_presence_is_calibrated_on(make, frames):
    net = LocalizerNet(make(size=SIZE, normalize=True), (8, 8, 8, 8)).eval()
    peaks = net(frames).peaks
    for number in range(4):
        cams = extract("cam", net.classifier, frames.float(), torch.full((3,), number))
        torch.testing.assert_close(peaks[:, number], cams.amax((1, 2)), rtol=1e-5, atol=1e-6)


def test_means_of_pixels_are_exact_whatever_the_weights_are_held_in(make, frames):
    classifier = make(size=SIZE)
    classifier.head.bfloat16()  # as on a GPU
    expected = frames.double().unflatten(3, (SIZE, 3)).unflatten(2, (SIZE, 3)).mean((3, 5))
    torch.testing.assert_close(classifier.class_frames(frames).double(), expected, rtol=0, atol=1e-4)
