"""Fold batch norms into convolutions, and the decoder's two output maps into one, for faster inference."""

import copy
from collections import Counter
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from colocam.models import LocalizerNet

M = TypeVar("M", bound=nn.Module)


@torch.no_grad()
def fold_batch_norms(net: M, frames: Tensor) -> M:
    """A copy of ``net`` in evaluation mode, in which γ (W∗x − μ) / σ + β is one convolution.

    A pass over ``frames`` finds the convolution before each batch norm. A batch norm that also has another input, or
    whose convolution also has another use, is kept.
    """
    net = copy.deepcopy(net).eval()
    made: dict[int, tuple[str, Tensor]] = {}  # holds the tensors: the id of a freed tensor may be reused
    calls: list[str] = []
    pairs: list[tuple[str, str]] = []

    def convolved(name: str, out: Tensor) -> None:
        made[id(out)] = (name, out)
        calls.append(name)

    def normalised(name: str, into: Tensor) -> None:
        if id(into) in made:
            pairs.append((made[id(into)][0], name))
        calls.append(name)

    hooks = []
    for name, module in net.named_modules():
        if type(module) is nn.Conv2d:

            def after(_: nn.Module, __: Any, out: Tensor, name: str = name) -> None:  # noqa: ANN401 - torch's own
                convolved(name, out)

            hooks.append(module.register_forward_hook(after))
        elif type(module) is nn.BatchNorm2d:

            def before(_: nn.Module, into: tuple[Tensor], name: str = name) -> None:
                normalised(name, into[0])

            hooks.append(module.register_forward_pre_hook(before))
    net(frames)
    for hook in hooks:
        hook.remove()
    for (convolution, norm), times in Counter(pairs).items():
        if calls.count(convolution) == calls.count(norm) == times:
            conv, bn = net.get_submodule(convolution), net.get_submodule(norm)
            assert isinstance(conv, nn.Conv2d)
            assert isinstance(bn, nn.BatchNorm2d)
            net.set_submodule(convolution, fuse_conv_bn_eval(conv, bn))
            net.set_submodule(norm, nn.Identity())
    return net.to(memory_format=torch.channels_last)


@torch.no_grad()
def fold_two_maps(net: LocalizerNet) -> None:
    """Make the decoder's head compute one map, the difference d of its two: the softmax of two values is σ(d)."""
    head = net.decoder.head
    one = nn.Conv2d(head.in_channels, 1, head.kernel_size, padding=head.padding)  # type: ignore[arg-type]
    assert head.bias is not None
    assert one.bias is not None
    one.weight.copy_(head.weight[1:] - head.weight[:1])
    one.bias.copy_(head.bias[1:] - head.bias[:1])
    net.decoder.head = one.to(head.weight.device).to(memory_format=torch.channels_last).eval()
