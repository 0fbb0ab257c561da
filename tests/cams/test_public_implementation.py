"""Every method against torch-cam, on timm's resnet18 as timm builds it."""

import pytest
import timm
import torch
from torchcam import methods as torchcam

from colocam.cams import classifier_cams, extract, min_max

THEIRS = {
    "cam": torchcam.CAM,
    "gradcam": torchcam.GradCAM,
    "gradcam++": torchcam.SmoothGradCAMpp,  # whose GradCAMpp leaves out the factor α of the paper
    "smooth-gradcam++": torchcam.SmoothGradCAMpp,
    "xgradcam": torchcam.XGradCAM,
    "layercam": torchcam.LayerCAM,
}
WITHOUT_GUARDS = {"eps": 0.0}
"""torch-cam adds 1e-8 to denominators of the size of g² ≈ 1e-7 here: the formula is what is compared."""


def timm_twin(classifier):
    """timm's whole resnet18, ImageNet-style, with the classifier's weights: none of our code is in it."""
    network = timm.create_model("resnet18", num_classes=classifier.head.out_features)
    state = {**classifier.encoder.network.state_dict()}
    state |= {f"fc.{name}": value for name, value in classifier.head.state_dict().items()}
    network.load_state_dict(state)
    return network.eval()


def normalized(frames):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (frames / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)


def theirs(method, model, layer, inputs, classes, **more):
    options = {"gradcam++": {"num_samples": 1, "std": 1e-12}, "smooth-gradcam++": {"num_samples": 3, "std": 1e-12}}
    head = {"cam": {"fc_layer": "fc"}}
    guards = WITHOUT_GUARDS if method in {"gradcam++", "smooth-gradcam++", "xgradcam"} else {}
    with THEIRS[method](model, layer, **options.get(method, {}), **head.get(method, {})) as extractor:
        scores = model(inputs)
        (maps,) = extractor(classes.tolist(), scores, normalized=False, **guards, **more)
    return min_max(maps.detach())


@pytest.fixture(scope="module")
def large_frames():
    return torch.randint(256, (4, 3, 96, 128), generator=torch.Generator().manual_seed(0)).float()


@pytest.mark.parametrize("method", classifier_cams())
def test_on_timms_resnet18(method, resnet18, large_frames):
    classes = torch.tensor([0, 4, 2, 4])
    found = extract(method, resnet18, large_frames, classes)
    expected = theirs(method, timm_twin(resnet18), "layer4", normalized(large_frames), classes)
    assert found.shape == expected.shape == (4, 3, 4)
    assert (expected.amax((1, 2)) == 1).all()
    torch.testing.assert_close(min_max(found), expected, rtol=0, atol=1e-4)
