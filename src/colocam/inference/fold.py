"""Fold batch norms into convolutions, and the decoder's two output maps into one, for faster inference."""

from collections import Counter
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from colocam.models import LocalizerNet

M = TypeVar("M", bound=nn.Module)


@torch.no_grad()
def fold_batch_norms(net: M, frames: Tensor) -> M:
    """Put ``net`` into evaluation mode and make γ (W∗x − μ) / σ + β one convolution, in place; returns ``net``.

    A pass over ``frames`` finds the convolution before each batch norm. A batch norm that also has another input, or
    whose convolution also has another use, is kept.
    """
    folded = set()
    for conv, bn in _convolutions_of_norms(net.eval(), frames):
        assert bn.running_mean is not None
        assert bn.running_var is not None
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        folded.add(bn)
    for name, module in list(net.named_modules(remove_duplicate=False)):  # a module may have several names
        if module in folded:
            net.set_submodule(name, nn.Identity())
    return net.to(memory_format=torch.channels_last)


def _convolutions_of_norms(net: nn.Module, frames: Tensor) -> list[tuple[nn.Conv2d, nn.BatchNorm2d]]:
    """Pairs of which neither is used without the other."""
    made: dict[int, tuple[nn.Conv2d, Tensor]] = {}  # holds the tensors: the id of a freed tensor may be reused
    calls: Counter[nn.Module] = Counter()
    pairs: Counter[tuple[nn.Conv2d, nn.BatchNorm2d]] = Counter()

    def convolved(module: nn.Conv2d, _: Any, out: Tensor) -> None:  # noqa: ANN401 - torch's own
        made[id(out)] = (module, out)
        calls[module] += 1

    def normalised(module: nn.BatchNorm2d, into: tuple[Tensor]) -> None:
        if id(into[0]) in made:
            pairs[made[id(into[0])][0], module] += 1
        calls[module] += 1

    hooks = []
    for module in net.modules():
        if type(module) is nn.Conv2d:
            hooks.append(module.register_forward_hook(convolved))
        elif type(module) is nn.BatchNorm2d:
            hooks.append(module.register_forward_pre_hook(normalised))
    net(frames)
    for hook in hooks:
        hook.remove()
    return [pair for pair, times in pairs.items() if all(calls[module] == times for module in pair)]


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
