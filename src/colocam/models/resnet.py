"""A backbone as the encoder uses it, and ResNets, built without timm, whose import takes longer than that of torch.

The ResNets have bottlenecks (He et al., CVPR 2016). Names of parts and layers, and the weights to begin with, are those
of timm, which builds them where it downloads weights, and all other networks.
"""

from typing import Literal, NamedTuple

from torch import Tensor, nn

from colocam.config import Backbone

Decoder = Literal["unet", "unet with center", "tokens"]


class Trunk(NamedTuple):
    """A backbone, as the encoder uses it.

    Attributes:
        network: normalized frames (B, 3, H, W) → feature maps [(B, C_i, H_i, W_i)], finest first.
        channels: C_i.
        last_stage: prefixes of the names of the parameters after the last but one map; stage 1 trains them with a
            higher learning rate.
        decoder: which decoder fits the maps, see :func:`colocam.models.decoder.make_decoder`.
    """

    network: nn.Module
    channels: list[int]
    last_stage: tuple[str, ...]
    decoder: Decoder = "unet"


BLOCKS = {"resnet26": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
"""Blocks of each stage, by name."""
EXPANSION = 4


class Bottleneck(nn.Module):
    """1×1 convolution to ``width`` channels, 3×3 convolution, 1×1 convolution to four times as many, and a shortcut.

    ``strides`` are those of the first and the second convolution.
    """

    def __init__(self, into: int, width: int, strides: tuple[int, int]) -> None:
        super().__init__()
        out, (first, second) = EXPANSION * width, strides
        self.conv1 = nn.Conv2d(into, width, 1, first, bias=False)
        self.bn1, self.act1 = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, second, padding=1, bias=False)
        self.bn2, self.act2 = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3, self.act3 = nn.BatchNorm2d(out), nn.ReLU(inplace=True)
        self.downsample = None
        if into != out:
            self.downsample = nn.Sequential(nn.Conv2d(into, out, 1, first * second, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) → (B, 4 width, H / stride, W / stride)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.act1(self.bn1(self.conv1(x)))
        x = self.act2(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += shortcut
        result: Tensor = self.act3(x)
        return result


class ResNet(nn.Module):
    """The network up to its last feature map.

    Args:
        blocks: of each of four stages.
        output_stride: frame pixels per cell of the last map; stages that would exceed it have no stride.
        stride_in_1x1: whether blocks stride in their first convolution, as published, or in the 3×3.
    """

    def __init__(self, blocks: tuple[int, ...], output_stride: int, *, stride_in_1x1: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1, self.act1 = nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        into, reached = 64, 4
        for stage, count in enumerate(blocks):
            stride = 1 if stage == 0 or reached == output_stride else 2
            reached *= stride
            width, layers = 64 << stage, []
            for index in range(count):
                own = stride if index == 0 else 1
                layers.append(Bottleneck(into, width, (own, 1) if stride_in_1x1 else (1, own)))
                into = EXPANSION * width
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        if not self.conv1.weight.is_meta:  # on that device, random numbers import torch's compiler, for seconds
            self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Bottleneck):
                nn.init.zeros_(module.bn3.weight)  # a new block begins as its shortcut

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) → maps with 64 channels at H/2 and with 256, 512, 1024 and 2048 at H/4 and the stages after."""
        maps = [self.act1(self.bn1(self.conv1(frames)))]
        x = self.maxpool(maps[0])
        for stage in range(4):
            x = self.get_submodule(f"layer{stage + 1}")(x)
            maps.append(x)
        return maps


def is_plain_resnet(backbone: Backbone) -> bool:
    """Whether :func:`build_resnet` builds it: a model that is stored, or begins with random weights."""
    begins = not backbone.pretrained and backbone.weights is None
    return begins and not backbone.args and backbone.name.partition(".")[0] in BLOCKS


def build_resnet(backbone: Backbone) -> Trunk:
    """Build a ResNet by its name in timm."""
    blocks = BLOCKS[backbone.name.partition(".")[0]]
    network = ResNet(blocks, backbone.output_stride, stride_in_1x1=backbone.stride_in_1x1)
    return Trunk(network, [64, *(EXPANSION * 64 << stage for stage in range(4))], ("layer4.",))
