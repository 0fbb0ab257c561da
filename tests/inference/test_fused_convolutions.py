import pytest
import torch
from torch import nn

from batch_norms import unsettle
from colocam.config import load_config
from colocam.inference.fold import ConvReLU, fold_batch_norms, fuse_relus
from colocam.models import Classifier, LocalizerNet

SMALL = ["backbone.pretrained=false", "frames.resize=40", "frames.crop=32", "localizer.decoder=[16, 8, 8, 8, 4]"]


@pytest.mark.parametrize(
    ("backbone", "size", "left"),
    [("resnet18", 16, 0), ("resnet26", None, 0), ("ecaresnet26t", None, None), ("mobilenetv3_small_100", None, None)],
)
def test_fused_convolutions_change_nothing(backbone, size, left):
    config = load_config("cpu", overrides=[*SMALL, f"backbone.name={backbone}"])
    torch.manual_seed(0)
    net = unsettle(LocalizerNet(Classifier(config.backbone, 3, size=size), config.localizer.decoder))
    frames = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    net = fold_batch_norms(net, frames[:1])
    with torch.no_grad():
        expected = net(frames)
        fuse_relus(net, frames[:1])
        found = net(frames)
    assert sum(isinstance(module, ConvReLU) for module in net.modules()) > 8
    if left is not None:
        assert sum(isinstance(module, nn.ReLU) for module in net.modules()) == left
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
