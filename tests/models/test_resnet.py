"""ResNets of our own are those of timm, and a stored model of the preset opens without timm."""

import subprocess
import sys

import pytest
import timm
import torch

from colocam.config import Backbone
from colocam.config.card import Card
from colocam.models import Classifier, Encoder, LocalizerNet
from colocam.models.model_file import Model, save_model
from colocam.models.networks import build_with_timm
from colocam.models.resnet import BLOCKS, ResNet, is_plain_resnet
from tests.helpers.batch_norms import unsettle


@pytest.mark.parametrize("stride", [8, 16, 32])
@pytest.mark.parametrize("early", [False, True])
def test_it_computes_what_timms_computes(stride, early):
    backbone = Backbone(name="resnet26.bt_in1k", pretrained=False, output_stride=stride, stride_in_1x1=early)
    ours, theirs = Encoder(backbone), build_with_timm(backbone)
    assert isinstance(ours.network, ResNet)
    assert not isinstance(theirs.network, ResNet)
    unsettle(theirs.network)
    ours.network.load_state_dict(theirs.network.state_dict())
    # In 64 bits: which kernel convolves, and so how it rounds, depends on the CPU and on the layout of the input.
    frames = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    with torch.no_grad():
        for found, expected in zip(ours.network.double().eval()(frames), theirs.network.double()(frames), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert ours.channels == theirs.channels
    late = {name for name, _ in theirs.network.named_parameters() if name.startswith(theirs.last_stage)}
    own = {id(one) for one in ours.last_stage()}
    assert {name for name, one in ours.network.named_parameters() if id(one) in own} == late


@pytest.mark.parametrize("name", BLOCKS)
def test_each_has_the_layers_of_timms(name):
    with torch.device("meta"):
        ours = Encoder(Backbone(name=name, pretrained=False)).network.state_dict()
        theirs = timm.create_model(name, features_only=True).state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


def test_random_weights_have_the_spread_of_timms():
    torch.manual_seed(0)
    ours = Encoder(Backbone(name="resnet26", pretrained=False)).network.state_dict()
    theirs = timm.create_model("resnet26", features_only=True).state_dict()
    for name, tensor in ours.items():
        if tensor.is_floating_point():
            assert float(tensor.std(correction=0)) == pytest.approx(float(theirs[name].std(correction=0)), rel=0.1), (
                name
            )
            assert float(tensor.mean()) == pytest.approx(float(theirs[name].mean()), abs=0.01), name


@pytest.mark.parametrize(
    "changes", [{"name": "resnet18"}, {"name": "resnet50d"}, {"args": {"avg_down": True}}, {"pretrained": True}]
)
def test_others_and_what_is_downloaded_are_left_to_timm(changes):
    plain = Backbone(name="resnet50", pretrained=False)
    assert is_plain_resnet(plain)
    assert not is_plain_resnet(plain.model_copy(update=changes))


def test_a_stored_model_opens_without_timm(tmp_path):
    """timm and what it imports take longer to import than torch does."""
    backbone = Backbone(name="resnet26", pretrained=False, mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2))
    net = LocalizerNet(Classifier(backbone, 2), (8, 8, 8, 8))
    card = Card(
        method="colocam",
        tags=("cat", "dog"),
        size=64,
        threshold=0.5,
        threshold_from="tags-only",
        backbone=backbone,
        decoder=(8, 8, 8, 8),
    )
    save_model(tmp_path, Model(net, card))
    code = (
        "import sys; from pathlib import Path\n"
        "from colocam.inference.localizer import open_network\n"
        f"open_network(Path({str(tmp_path)!r}), 'cpu')\n"
        "print(sorted({'timm', 'torchvision', 'torch._dynamo', 'segmentation_models_pytorch'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
