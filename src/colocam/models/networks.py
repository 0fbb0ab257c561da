"""The backbones: VGG and InceptionV3 as published for CAMs, vision transformers, and any other network of timm."""

from itertools import cycle

import torch
from timm.layers.format import Format
from timm.layers.pool2d_same import AvgPool2dSame
from timm.models.eva import Eva
from timm.models.inception_v3 import InceptionB
from timm.models.resnet import Bottleneck
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.models.resnet import Trunk
from colocam.models.timm_networks import convolution, create, family, keeps_its_strides, load_weights, plain

WIDTH = 1024
"""Channels of the last map of VGG and InceptionV3."""
SKIPS = {"Conv2d_2b_3x3": 64, "Conv2d_3b_1x1": 80, "Mixed_5d": 288, "Mixed_6e": 768}
"""Layers whose output goes to the decoder, and its channels."""
FAMILIES = frozenset({"vision_transformer", "deit", "eva"})
"""Modules of timm with plain transformers that accept frames of any size."""


def build_with_timm(backbone: Backbone) -> Trunk:
    """Build the network that a configuration names, with its weights."""
    match family(backbone.name):
        case "vgg":
            trunk = build_vgg(backbone)
        case "inception_v3":
            trunk = build_inception(backbone)
        case kind if kind in FAMILIES:
            trunk = build_vit(backbone)
        case _:
            trunk = build_cnn(backbone)
    if backbone.stride_in_1x1:
        move_strides(trunk.network, backbone.name)
    return trunk


class Vgg(nn.Module):
    """VGG as published for CAMs: no last pools and fully connected layers, but a convolution to 1024 channels.

    The output stride says how many ``pools`` stay (8: three, 16: four, 32: five). VGG16 at output stride 8 and 224²:
    28×28×1024 features, 19.44 M parameters with ten classes. A U-Net with a center block and the channels 256, 128, 64
    on the maps below the frame's own resolution (1024, 256 and 128 channels) adds 23.12 M: together the published
    42.57 M.
    """

    def __init__(self, features: nn.Sequential, pools: int, width: int) -> None:
        super().__init__()
        found = [index for index, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)]
        for index in found[pools:]:
            features[index] = nn.Identity()
        self.features = features
        self.added = nn.Sequential(convolution(width, WIDTH), nn.ReLU(inplace=True))

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
    # the fully connected layers, nine tenths of VGG, are removed below: initialize small ones unless weights are loaded
    narrow = {} if backbone.pretrained and backbone.weights is None else {"mlp_ratio": 1 / 4096}
    network = create(backbone, **narrow)
    for name in [name for name, _ in network.named_children() if name != "features"]:
        delattr(network, name)
    load_weights(network, backbone.weights)
    pools = backbone.output_stride.bit_length() - 1
    widths = [stage["num_chs"] for stage in network.feature_info]
    return Trunk(Vgg(network.features, pools, widths[-1]), [*widths[1:pools], WIDTH], ("added.",), "unet with center")


class Inception(nn.Module):
    """InceptionV3 as published for CAMs: up to Mixed_6e, without the stride of Mixed_6a, and two more convolutions.

    At output stride 8 and 224²: 29×29×1024 features, 25.49 M parameters with ten classes. A U-Net with the channels
    256, 128, 64, 32, 16 on the maps of 1024, 768 (Mixed_6e), 288 (Mixed_5d), 80 (Conv2d_3b) and 64 channels (Conv2d_2b)
    adds 5.70 M: together the published 31.20 M.

    The number of parameters does not determine the paddings. Here every layer of the stem is padded and its pools
    include the last row, so that 29 cells are spread evenly over 224 pixels, with the outer cells centered on the
    frame's edge.
    """

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
    load_weights(trunk, backbone.weights)
    inception = Inception(trunk, backbone.output_stride)
    return Trunk(inception, [*SKIPS.values(), WIDTH], ("added.",))


class Vit(nn.Module):
    """A plain vision transformer: the patch tokens of the last block, after the final norm, form one feature map.

    The paper names it as future work. It also works with self-supervised weights (DINO, DINOv2, DINOv3).
    """

    def __init__(self, vit: VisionTransformer | Eva) -> None:
        super().__init__()
        self.vit = vit

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W), H and W multiples of the patch p → one map (B, C, H/p, W/p)."""
        height, width = self.vit.patch_embed.patch_size
        if frames.shape[2] % height or frames.shape[3] % width:
            raise ColocamError(
                f"frames of {frames.shape[3]}×{frames.shape[2]} pixels do not divide into patches of {width}×{height}: "
                f"set frames.crop to a multiple of {width}"
            )
        maps = self.vit.forward_intermediates(frames, indices=1, norm=True, output_fmt="NCHW", intermediates_only=True)
        assert isinstance(maps, list)
        return maps


def build_vit(backbone: Backbone) -> Trunk:
    """Build a transformer of timm; its patch size replaces ``backbone.output_stride``."""
    vit = create(backbone, num_classes=0, dynamic_img_size=True)
    vit.attn_pool = None  # the classifier averages the tokens, also where timm pools by attention
    load_weights(vit, backbone.weights)
    if isinstance(vit.norm, nn.Identity):  # timm normalizes the mean of the tokens there; normalize each token
        vit.norm, vit.fc_norm = vit.fc_norm, vit.norm
    return Trunk(Vit(vit), [vit.embed_dim], (f"vit.blocks.{len(vit.blocks) - 1}.", "vit.norm."), "tokens")


def build_cnn(backbone: Backbone) -> Trunk:
    """Build the network; its last map has ``backbone.output_stride`` frame pixels per cell."""
    stride = {} if backbone.output_stride == 32 else {"output_stride": backbone.output_stride}
    network = create(backbone, features_only=True, **stride)
    info = network.feature_info
    if stride:
        if info.reduction()[-1] != backbone.output_stride:
            raise ColocamError(keeps_its_strides(backbone))
        _remove_dilation(network)
    load_weights(network, backbone.weights)
    channels: list[int] = info.channels()
    last_stage = _after(network, info.module_name()[-2]) if len(channels) > 1 else ()
    if getattr(network, "output_fmt", None) == Format.NHWC:
        return Trunk(ChannelsFirst(network), channels, tuple(f"network.{name}" for name in last_stage))
    return Trunk(network, channels, last_stage)


class ChannelsFirst(nn.Module):
    """Permutes feature maps (B, H, W, C), as Swin returns them, to (B, C, H, W)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) → [(B, C_i, H_i, W_i)]."""
        return [features.permute(0, 3, 1, 2) for features in self.network(frames)]


def _remove_dilation(network: nn.Module) -> None:
    """Undo what timm does when it removes a stride; the published networks do not do it.

    timm adds dilation. In shortcuts that average before they stride (ResNet-D) it leaves a 2×2 mean with stride 1,
    which is centered half a cell down and right of its cell, so that CAMs would be shifted up and left; it is removed.
    A 2×2 convolution (ConvNeXt) cannot be removed. One is padded by one cell on all sides and the next one by none,
    which centers both; the map between them has one more row and column.
    """
    padding = cycle((1, 0))
    for name, module in list(network.named_modules()):
        if isinstance(module, AvgPool2dSame) and module.stride in {1, (1, 1)}:
            network.set_submodule(name, nn.Identity())
        elif isinstance(module, nn.Conv2d) and module.kernel_size == (2, 2) and module.stride == (1, 1):
            bias = module.bias is not None
            conv = nn.Conv2d(module.in_channels, module.out_channels, 2, padding=next(padding), bias=bias)
            conv.load_state_dict(module.state_dict())  # a Conv2dSame would choose its own padding
            network.set_submodule(name, conv)
        elif isinstance(module, nn.Conv2d) and module.dilation != (1, 1):
            module.padding = tuple(side // 2 for side in module.kernel_size)
            module.dilation = (1, 1)


def move_strides(network: nn.Module, name: str) -> None:
    """Move the stride of each residual bottleneck from its 3×3 convolution to its first 1×1 (ResNet version 1)."""
    blocks = [module for module in network.modules() if isinstance(module, Bottleneck)]
    if not blocks:
        raise ColocamError(
            f"'{name}' has no residual bottlenecks: leave backbone.stride_in_1x1 out (it is for resnet50, …)"
        )
    for block in blocks:
        block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride


def _after(network: nn.Module, module: str) -> tuple[str, ...]:
    """Names of the parameters after those of a module, or of its parent if it has none."""
    names = [name for name, _ in network.named_parameters()]
    inside: list[int] = []
    while module and not inside:
        inside = [index for index, name in enumerate(names) if plain(name).startswith(plain(module) + ".")]
        module = module.rpartition(".")[0]
    return tuple(names[max(inside) + 1 :]) if inside else ()
