"""Fold and fuse the layers of a trained network, for faster inference.

Batch norms are folded into convolutions, and the decoder's two output maps into one. On a GPU the bias, the shortcut
and the ReLU after a convolution become one kernel: PyTorch launches a kernel for each, and reading and writing the
feature maps three times takes as long as the convolution.

Tests: tests/inference/test_torch_network.py, tests/gpu/test_gpu.py.
"""

from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from colocam.models import LocalizerNet
from colocam.models.resnet import Bottleneck

M = TypeVar("M", bound=nn.Module)
RESNETS = frozenset({Bottleneck.__module__, "timm.models.resnet"})
"""Modules with the blocks of ResNets; timm, which takes seconds to import, may not be imported."""


@torch.no_grad()
def fold_batch_norms(net: M, frames: Tensor) -> M:
    """Put ``net`` into evaluation mode and make γ (W∗x − μ) / σ + β one convolution, in place; returns ``net``.

    A pass over ``frames`` finds the convolution before each batch norm. A batch norm that also has another input, or
    whose convolution also has another use, is kept.
    """
    folded: dict[nn.Module, nn.Module] = {}
    for conv, bn in _pairs(
        net.eval(), frames, lambda module: type(module) is nn.Conv2d, lambda module: type(module) is nn.BatchNorm2d
    ):
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(bn, nn.BatchNorm2d)
        assert bn.running_mean is not None
        assert bn.running_var is not None
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        folded[bn] = nn.Identity()
    _replace(net, folded)
    return net.to(memory_format=torch.channels_last)


@torch.no_grad()
def fold_two_maps(net: LocalizerNet) -> None:
    """Make each decoder's head compute one map, the difference d of its two: the softmax of two values is σ(d)."""
    for decoder in (net.decoder, net.prior):
        if decoder is None:
            continue
        head = decoder.head
        difference = nn.Conv2d(head.in_channels, 1, head.kernel_size, padding=head.padding)  # type: ignore[arg-type]
        assert head.bias is not None
        assert difference.bias is not None
        difference.weight.copy_(head.weight[1:] - head.weight[:1])
        difference.bias.copy_(head.bias[1:] - head.bias[:1])
        decoder.head = difference.to(head.weight.device).to(memory_format=torch.channels_last).eval()


@torch.no_grad()
def fuse_relus(net: nn.Module, frames: Tensor) -> None:
    """Replace convolutions that are followed by a ReLU, in place; batch norms are folded before.

    A pass over ``frames`` finds the pairs. Nothing is replaced where Triton is missing.
    """
    if find_spec("triton") is None:
        return
    _replace(net, {block: residual for block in net.modules() if (residual := _residual(block)) is not None})
    fused: dict[nn.Module, nn.Module] = {}
    for conv, relu in _pairs(
        net,
        frames,
        lambda module: type(module) is nn.Conv2d and module.bias is not None,
        lambda module: type(module) is nn.ReLU and module.inplace,  # so that nobody uses the output before it
    ):
        assert isinstance(conv, nn.Conv2d)
        fused |= {conv: ConvReLU(conv), relu: nn.Identity()}
    _replace(net, fused)


class ConvReLU(nn.Module):
    """relu(W∗x + b), or relu(W∗x + b + shortcut)."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor, shortcut: Tensor | None = None) -> Tensor:
        """(B, C, H, W) and, of the shape of the result, the shortcut."""
        conv = self.conv
        y = F.conv2d(x, conv.weight, None, conv.stride, conv.padding, conv.dilation, conv.groups)
        assert conv.bias is not None
        return add_relu_(y, conv.bias, shortcut)


def add_relu_(y: Tensor, bias: Tensor, shortcut: Tensor | None) -> Tensor:
    """relu(y + bias + shortcut) in place: y (B, C, H, W), bias (C,), shortcut as y or None."""
    layout = torch.channels_last
    fits = shortcut is None or (shortcut.dtype == y.dtype and shortcut.is_contiguous(memory_format=layout))
    if not (y.is_cuda and y.is_contiguous(memory_format=layout) and fits):
        y = y.add_(bias[:, None, None])
        return (y if shortcut is None else y.add_(shortcut)).relu_()
    from colocam.models import fused_kernels  # noqa: PLC0415 - Triton is not everywhere

    fused_kernels.add_relu[-(-y.numel() // fused_kernels.BLOCK),](
        y, bias, y if shortcut is None else shortcut, y.numel(), channels=y.shape[1], shortcut=shortcut is not None,
        block=fused_kernels.BLOCK, num_warps=4,
    )  # fmt: skip
    return y


class _Residual(nn.Module):
    """A block of a ResNet whose last convolution is a :class:`ConvReLU` with the shortcut."""

    def __init__(self, parts: list[nn.Module], last: nn.Conv2d, downsample: nn.Module | None) -> None:
        super().__init__()
        self.parts = nn.Sequential(*parts)
        self.last = ConvReLU(last)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) → (B, C', H', W')."""
        shortcut = x if self.downsample is None else self.downsample(x)
        result: Tensor = self.last(self.parts(x), shortcut)
        return result


def _residual(block: nn.Module) -> _Residual | None:
    """The block with its last addition and ReLU fused; None if it is no ResNet block, or has more than convolutions."""
    kind = type(block)
    parts = dict(block.named_children())
    if kind.__module__ not in RESNETS or kind.__name__ not in {"Bottleneck", "BasicBlock"}:
        return None
    names: tuple[str, ...]
    if kind.__name__ == "Bottleneck":
        names = ("conv1", "bn1", "act1", "conv2", "bn2", "drop_block", "act2", "aa")
        number = 3
    else:
        names = ("conv1", "bn1", "drop_block", "act1", "aa")
        number = 2
    last, norm, act = (parts.get(f"{name}{number}") for name in ("conv", "bn", "act"))
    if "se" in parts or type(act) is not nn.ReLU or type(norm) is not nn.Identity:
        return None
    if type(last) is not nn.Conv2d or last.bias is None:
        return None
    # in evaluation, no path is dropped
    return _Residual([parts[name] for name in names if name in parts], last, parts.get("downsample"))


def _pairs(
    net: nn.Module, frames: Tensor, first: Callable[[nn.Module], bool], second: Callable[[nn.Module], bool]
) -> list[tuple[nn.Module, nn.Module]]:
    """Modules that give and take the same tensor, unchanged in between; neither is ever used without the other."""
    made: dict[int, tuple[nn.Module, Tensor, int]] = {}  # holds the tensors: the id of a freed tensor may be reused
    calls: Counter[nn.Module] = Counter()  # frames may pass an encoder twice
    pairs: Counter[tuple[nn.Module, nn.Module]] = Counter()

    def after(module: nn.Module, _: Any, out: Tensor) -> None:  # noqa: ANN401 - torch's own
        made[id(out)] = module, out, out._version  # noqa: SLF001 - whether it was changed in place
        calls[module] += 1

    def before(module: nn.Module, into: tuple[Tensor]) -> None:
        giver, _, version = made.get(id(into[0]), (module, into[0], -1))
        if version == into[0]._version:  # noqa: SLF001
            pairs[giver, module] += 1
        calls[module] += 1

    hooks = [module.register_forward_hook(after) for module in net.modules() if first(module)]
    hooks += [module.register_forward_pre_hook(before) for module in net.modules() if second(module)]
    net(frames)
    for hook in hooks:
        hook.remove()
    return [pair for pair, times in pairs.items() if all(calls[module] == times for module in pair)]


def _replace(net: nn.Module, others: dict[nn.Module, nn.Module]) -> None:
    """Put other modules in the places of some; a module may have several names."""
    for name, module in list(net.named_modules(remove_duplicate=False)):
        if module in others:
            net.set_submodule(name, others[module])
