"""Any convolutional network of timm: a feature map per scale, with strides removed for finer CAMs."""

from itertools import cycle

from timm.layers.format import Format
from timm.layers.pool2d_same import AvgPool2dSame
from timm.models.resnet import Bottleneck
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.models.timm_networks import Trunk, create, keeps_its_strides
from colocam.models.weights import load_weights, plain


def build_cnn(backbone: Backbone) -> Trunk:
    """Build the network; its last map has ``backbone.output_stride`` frame pixels per cell."""
    stride = {} if backbone.output_stride == 32 else {"output_stride": backbone.output_stride}
    network = create(backbone, features_only=True, **stride)
    info = network.feature_info
    if stride:
        if info.reduction()[-1] != backbone.output_stride:
            raise ColocamError(keeps_its_strides(backbone))
        _remove_dilation(network)
    if backbone.weights is not None:
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
    which is centred half a cell down and right of its cell, so that CAMs would be shifted up and left; it is removed. A
    2×2 convolution (ConvNeXt) cannot be removed. One is padded by one cell on all sides and the next one by none, which
    centres both; the map between them has one more row and column.
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
