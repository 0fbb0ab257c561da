"""Classifiers of this room: untrained, but with batch normalization as uneven as after training."""

import pytest
import torch

from colocam.config import Backbone, load_config
from colocam.models import Classifier
from tests.helpers.batch_norms import unsettle


@pytest.fixture(scope="package")
def small(tiny) -> Classifier:
    """The network of the preset ``cpu``, narrower: 4×4 features of 32×32 frames. Read only."""
    torch.manual_seed(0)
    return unsettle(Classifier(load_config(overrides=tiny).backbone, 4), 0)


@pytest.fixture(scope="package")
def resnet18() -> Classifier:
    """timm's own resnet18 with strides kept: 3×3 features of 96×96 frames. Read only."""
    torch.manual_seed(1)
    backbone = Backbone(name="resnet18", pretrained=False, output_stride=32)
    return unsettle(Classifier(backbone, 5), 1)
