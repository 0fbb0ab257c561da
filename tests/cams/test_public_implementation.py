"""Every method against torch-cam, on timm's resnet18 as timm builds it and on our own small network."""

import pytest
import timm
import torch
from torch import nn
from torchcam import methods as torchcam

from colocam.cams import classifier_cams, extract, min_max

THEIRS = {
    "cam": torchcam.CAM,
    "gradcam": torchcam.GradCAM,
    "gradcam++": torchcam.SmoothGradCAMpp,  # see test_torchcams_gradcam_pp_forgets_its_alpha
    "smooth-gradcam++": torchcam.SmoothGradCAMpp,
    "xgradcam": torchcam.XGradCAM,
    "layercam": torchcam.LayerCAM,
}
WITHOUT_GUARDS = {"eps": 0.0}
"""torch-cam adds 1e-8 to denominators of the size of g² ≈ 1e-7 here: the formula is what is compared."""


class Pooled(nn.Module):
    """Our classifier as one plain module, with the last feature map passing through a layer that hooks can find."""

    def __init__(self, classifier):
        super().__init__()
        self.encoder, self.last, self.head = classifier.encoder, nn.Identity(), classifier.head

    def forward(self, frames):
        return self.head(self.last(self.encoder(frames)[-1]).mean((2, 3)))


def timm_twin(classifier):
    """timm's whole resnet18, ImageNet-style, with the classifier's weights: none of our code is in it."""
    network = timm.create_model("resnet18", num_classes=classifier.head.out_features)
    state = {**classifier.encoder.network.state_dict()}
    state |= {f"fc.{name}": value for name, value in classifier.head.state_dict().items()}
    network.load_state_dict(state)
    return network.eval()


def normalised(frames):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (frames / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)


def theirs(method, model, layer, inputs, classes, **more):
    options = {"gradcam++": {"num_samples": 1, "std": 1e-12}, "smooth-gradcam++": {"num_samples": 3, "std": 1e-12}}
    head = {"cam": {"fc_layer": "fc" if hasattr(model, "fc") else "head"}}
    guards = WITHOUT_GUARDS if method in {"gradcam++", "smooth-gradcam++", "xgradcam"} else {}
    with THEIRS[method](model, layer, **options.get(method, {}), **head.get(method, {})) as extractor:
        scores = model(inputs)
        (maps,) = extractor(classes.tolist(), scores, normalized=False, **guards, **more)
    return min_max(maps.detach())


@pytest.fixture(scope="module")
def large_frames():
    return torch.randint(256, (4, 3, 96, 128), generator=torch.Generator().manual_seed(0)).float()


@pytest.fixture(scope="module")
def small_frames():
    return torch.randint(256, (6, 3, 32, 40), generator=torch.Generator().manual_seed(1)).float()


@pytest.mark.parametrize("method", classifier_cams())
def test_on_timms_resnet18(method, resnet18, large_frames):
    classes = torch.tensor([0, 4, 2, 4])
    found = extract(method, resnet18, large_frames, classes)
    expected = theirs(method, timm_twin(resnet18), "layer4", normalised(large_frames), classes)
    assert found.shape == expected.shape == (4, 3, 4)
    assert (expected.amax((1, 2)) == 1).all()
    torch.testing.assert_close(min_max(found), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", classifier_cams())
def test_on_the_small_network(method, small, small_frames):
    classes = torch.tensor([3, 1, 0, 2, 1, 1])
    found = extract(method, small, small_frames, classes)
    expected = theirs(method, Pooled(small), "last", small_frames, classes)
    assert found.shape == expected.shape == (6, 4, 5)
    torch.testing.assert_close(min_max(found), expected, rtol=0, atol=1e-4)


def test_noise_does_not_change_torchcams_smooth_weights(resnet18, large_frames):
    classes = torch.tensor([1, 1, 3, 0])
    twin, inputs = timm_twin(resnet18), normalised(large_frames)
    with torchcam.SmoothGradCAMpp(twin, "layer4", num_samples=4, std=0.3) as extractor:
        twin(inputs)
        features = extractor.hook_a[0].clone()
        (weights,) = extractor._get_weights(classes.tolist(), **WITHOUT_GUARDS)
        noisy = extractor.hook_a[0]
    assert not torch.allclose(noisy, features, rtol=0.01)  # there was noise
    expected = min_max((weights[:, :, None, None] * features).sum(1).relu())
    found = min_max(extract("smooth-gradcam++", resnet18, large_frames, classes))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_torchcams_gradcam_pp_forgets_its_alpha(resnet18, large_frames):
    """Its division happens on a copy (a tensor picked by a mask), so its weights are Σ g² ReLU(g), not the paper's.

    The day this fails, torch-cam is mended and its GradCAMpp belongs into ``THEIRS``.
    """
    classes = torch.tensor([1, 1, 3, 0])
    twin = timm_twin(resnet18)
    with torchcam.GradCAMpp(twin, "layer4") as extractor:
        (maps,) = extractor(classes.tolist(), twin(normalised(large_frames)), normalized=False)
        features = extractor.hook_a[0]
    cubes = resnet18.head.weight[classes].detach().relu() ** 3
    torch.testing.assert_close(min_max(maps), min_max(torch.einsum("bkhw,bk->bhw", features, cubes)), rtol=0, atol=1e-4)
    found = min_max(extract("gradcam++", resnet18, large_frames, classes))
    assert float((found - min_max(maps)).abs().max()) > 0.01
