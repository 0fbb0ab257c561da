"""Classifiers of this room: untrained, but with batch normalisation as uneven as after training."""

import pytest
import torch
from torch import nn

from colocam.config import Backbone, load_config
from colocam.models import Classifier


def unsettle(module: nn.Module, seed: int) -> nn.Module:
    """Give batch normalisation statistics and gains that are not those of an identity."""
    rng = torch.Generator().manual_seed(seed)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.2, generator=rng)
            part.running_var.uniform_(0.5, 2, generator=rng)
            part.weight.data.uniform_(0.5, 1.5, generator=rng)
            part.bias.data.normal_(0, 0.2, generator=rng)
    return module


@pytest.fixture(scope="package")
def small(tiny) -> Classifier:
    """The network of the preset ``cpu``, narrower: 4×4 features of 32×32 frames. Read only."""
    torch.manual_seed(0)
    return unsettle(Classifier(load_config(overrides=tiny).backbone, 4), 0).eval()


@pytest.fixture(scope="package")
def resnet18() -> Classifier:
    """timm's own resnet18 with strides kept: 3×3 features of 96×96 frames. Read only."""
    torch.manual_seed(1)
    backbone = Backbone(name="resnet18", pretrained=False, output_stride=32)
    return unsettle(Classifier(backbone, 5), 1).eval()
