"""Apply the bias, the shortcut and the ReLU after a convolution in one kernel, for faster inference on a GPU.

PyTorch launches a kernel for each. Reading and writing the feature maps three times takes as long as the convolution.
"""

from collections import Counter
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.models.resnet import Bottleneck

RESNETS = frozenset({Bottleneck.__module__, "timm.models.resnet"})
"""Modules with the blocks of ResNets; timm, which takes seconds to import, may not be imported."""


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
    from colocam.inference import fused_kernels  # noqa: PLC0415 - Triton is not everywhere

    fused_kernels.add_relu[-(-y.numel() // fused_kernels.BLOCK),](
        y, bias, y if shortcut is None else shortcut, y.numel(), channels=y.shape[1], shortcut=shortcut is not None,
        block=fused_kernels.BLOCK, num_warps=4,
    )  # fmt: skip
    return y


class _Residual(nn.Module):
    """A block of a ResNet whose last convolution is a :class:`ConvReLU` with the shortcut."""

    def __init__(self, parts: list[nn.Module], last: nn.Conv2d, downsample: nn.Module | None) -> None:
        super().__init__()
        self.parts, self.last, self.downsample = nn.Sequential(*parts), ConvReLU(last), downsample

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) → (B, C', H', W')."""
        shortcut = x if self.downsample is None else self.downsample(x)
        result: Tensor = self.last(self.parts(x), shortcut)
        return result


@torch.no_grad()
def fuse_relus(net: nn.Module, frames: Tensor) -> None:
    """Replace convolutions that are followed by a ReLU, in place; batch norms are folded before.

    A pass over ``frames`` finds the pairs. Nothing is replaced where Triton is missing.
    """
    if find_spec("triton") is None:
        return
    for name, block in list(net.named_modules()):
        if (residual := _residual(block)) is not None:
            net.set_submodule(name, residual)
    for conv, relu in _pairs(net, frames):
        found = net.get_submodule(conv)
        assert isinstance(found, nn.Conv2d)
        net.set_submodule(conv, ConvReLU(found))
        net.set_submodule(relu, nn.Identity())


def _residual(block: nn.Module) -> _Residual | None:
    """The block with its last addition and ReLU fused; None if it is no ResNet block, or has more than convolutions."""
    kind, parts = type(block), dict(block.named_children())
    if kind.__module__ not in RESNETS or kind.__name__ not in {"Bottleneck", "BasicBlock"}:
        return None
    names: tuple[str, ...]
    if kind.__name__ == "Bottleneck":
        names, number = ("conv1", "bn1", "act1", "conv2", "bn2", "drop_block", "act2", "aa"), 3
    else:
        names, number = ("conv1", "bn1", "drop_block", "act1", "aa"), 2
    last, norm, act = (parts.get(f"{name}{number}") for name in ("conv", "bn", "act"))
    if "se" in parts or type(act) is not nn.ReLU or type(norm) is not nn.Identity:
        return None
    if type(last) is not nn.Conv2d or last.bias is None:
        return None
    # in evaluation, no path is dropped
    return _Residual([parts[name] for name in names if name in parts], last, parts.get("downsample"))


def _pairs(net: nn.Module, frames: Tensor) -> list[tuple[str, str]]:
    """Names of the convolutions with a bias and the ReLUs that alone use their outputs, as they are."""
    made: dict[int, tuple[str, Tensor, int]] = {}  # holds the tensors: the id of a freed tensor may be reused
    calls: list[str] = []
    pairs: list[tuple[str, str]] = []
    hooks = []
    for name, module in net.named_modules():
        if type(module) is nn.Conv2d and module.bias is not None:

            def after(_: nn.Module, __: Any, out: Tensor, name: str = name) -> None:  # noqa: ANN401 - torch's own
                made[id(out)] = name, out, out._version  # noqa: SLF001 - whether it was changed in place
                calls.append(name)

            hooks.append(module.register_forward_hook(after))
        elif type(module) is nn.ReLU and module.inplace:  # so that nobody uses the output before it

            def before(_: nn.Module, into: tuple[Tensor], name: str = name) -> None:
                conv, _out, version = made.get(id(into[0]), ("", into[0], -1))
                if version == into[0]._version:  # noqa: SLF001
                    pairs.append((conv, name))
                calls.append(name)

            hooks.append(module.register_forward_pre_hook(before))
    net(frames)
    for hook in hooks:
        hook.remove()
    often = Counter(pairs)  # frames may pass an encoder twice
    return [pair for pair, times in often.items() if calls.count(pair[0]) == calls.count(pair[1]) == times]
