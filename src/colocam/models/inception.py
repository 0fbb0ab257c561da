"""InceptionV3 as published for CAMs: up to Mixed_6e, with the stride of Mixed_6a removed, and two more convolutions.

At output stride 8 and 224²: 29×29×1024 features, 25.49 M parameters with ten classes. A U-Net with the channels 256,
128, 64, 32, 16 on the maps of 1024, 768 (Mixed_6e), 288 (Mixed_5d), 80 (Conv2d_3b) and 64 channels (Conv2d_2b) adds
5.70 M: together the published 31.20 M.

The number of parameters does not determine the paddings. Here every layer of the stem is padded and its pools include
the last row, so that 29 cells are spread evenly over 224 pixels, with the outer cells centred on the frame's edge.
"""

import torch
from timm.models.inception_v3 import InceptionB
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.models.timm_networks import Trunk, convolution, create
from colocam.models.weights import load_weights

WIDTH = 1024
SKIPS = {"Conv2d_2b_3x3": 64, "Conv2d_3b_1x1": 80, "Mixed_5d": 288, "Mixed_6e": 768}
"""Layers whose output goes to the decoder, and its channels."""


class Inception(nn.Module):
    """Stem and blocks of InceptionV3 up to Mixed_6e, then 3×3 convolutions to 1024 channels."""

    def __init__(self, trunk: nn.Sequential, output_stride: int) -> None:
        super().__init__()
        for name in ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_4a_3x3"):
            conv = trunk.get_submodule(f"{name}.conv")
            assert isinstance(conv, nn.Conv2d)
            conv.padding = (1, 1)
        for name in ("Pool1", "Pool2"):
            trunk.set_submodule(name, nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True))
        block = trunk.get_submodule("Mixed_6a")
        assert isinstance(block, InceptionB)
        trunk.set_submodule("Mixed_6a", Mixed6a(block, output_stride // 8))
        self.trunk = trunk
        self.added = nn.Sequential(
            convolution(SKIPS["Mixed_6e"], WIDTH),
            nn.ReLU(inplace=True),
            convolution(WIDTH, WIDTH),
            nn.ReLU(inplace=True),
        )

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) → maps at H/2, H/4, H/8, H/8, H/8 with 64, 80, 288, 768 and 1024 channels (output stride 8)."""
        maps, x = [], frames
        for name, layer in self.trunk.named_children():
            x = layer(x)
            if name in SKIPS:
                maps.append(x)
        return [*maps, self.added(x)]


class Mixed6a(nn.Module):
    """The block Mixed_6a of InceptionV3, padded, with any stride."""

    def __init__(self, block: InceptionB, stride: int) -> None:
        super().__init__()
        self.branch3x3 = block.branch3x3
        self.branch3x3dbl_1 = block.branch3x3dbl_1
        self.branch3x3dbl_2 = block.branch3x3dbl_2
        self.branch3x3dbl_3 = block.branch3x3dbl_3
        for conv in (self.branch3x3.get_submodule("conv"), self.branch3x3dbl_3.get_submodule("conv")):
            assert isinstance(conv, nn.Conv2d)
            conv.stride, conv.padding = (stride, stride), (1, 1)
        self.pool = nn.MaxPool2d(3, stride=stride, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 288, h, w) → (B, 768, h / stride, w / stride)."""
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch3x3(x), double, self.pool(x)], dim=1)


def build_inception(backbone: Backbone) -> Trunk:
    """Build InceptionV3 with any of timm's weights for it."""
    if backbone.output_stride == 32:
        raise ColocamError(f"'{backbone.name}' ends at stride 16 here: set backbone.output_stride to 8 or 16")
    layers = dict(create(backbone).named_children())
    names = list(layers)[: list(layers).index("Mixed_6e") + 1]
    trunk = nn.Sequential()
    for name in names:
        trunk.add_module(name, layers[name])
    if backbone.weights is not None:
        load_weights(trunk, backbone.weights)
    inception = Inception(trunk, backbone.output_stride)
    return Trunk(inception, [*SKIPS.values(), WIDTH], ("added.",))
