"""VGG as published for CAMs: without its last pools and fully connected layers, plus a convolution to 1024 channels.

VGG16 at output stride 8 and 224²: 28×28×1024 features, 19.44 M parameters with ten classes. A U-Net with a centre block
and the channels 256, 128, 64 on the maps below the frame's own resolution (1024, 256 and 128 channels) adds 23.12 M:
together the published 42.57 M.
"""

from torch import Tensor, nn

from colocam.config import Backbone
from colocam.models.timm_networks import Trunk, convolution, create
from colocam.models.weights import load_weights

WIDTH = 1024


class Vgg(nn.Module):
    """The convolutions of VGG with the pools that ``output_stride`` needs (8: three, 16: four, 32: five)."""

    def __init__(self, features: nn.Sequential, output_stride: int) -> None:
        super().__init__()
        pools = [index for index, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)]
        for index in pools[output_stride.bit_length() - 1 :]:
            features[index] = nn.Identity()
        self.features = features
        widths = [layer.out_channels for layer in features if isinstance(layer, nn.Conv2d)]
        self.added = nn.Sequential(convolution(widths[-1], WIDTH), nn.ReLU(inplace=True))

    @property
    def channels(self) -> list[int]:
        """Channels of the maps, finest first."""
        found, width = [], 0
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                width = layer.out_channels
            elif isinstance(layer, nn.MaxPool2d):
                found.append(width)
        return [*found[1:], WIDTH]

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) → the maps before each pool but the first, at H/2, H/4, …, and the last one."""
        maps, x = [], frames
        for layer in self.features:
            if isinstance(layer, nn.MaxPool2d):
                maps.append(x)
            x = layer(x)
        return [*maps[1:], self.added(x)]


def build_vgg(backbone: Backbone) -> Trunk:
    """Build any VGG of timm, with or without batch norm."""
    # the fully connected layers, nine tenths of VGG, are removed below: initialise small ones unless weights are loaded
    narrow = {} if backbone.pretrained and backbone.weights is None else {"mlp_ratio": 1 / 4096}
    network = create(backbone, **narrow)
    for name in [name for name, _ in network.named_children() if name != "features"]:
        delattr(network, name)
    if backbone.weights is not None:
        load_weights(network, backbone.weights)
    assert isinstance(network.features, nn.Sequential)
    vgg = Vgg(network.features, backbone.output_stride)
    return Trunk(vgg, vgg.channels, ("added.",))
