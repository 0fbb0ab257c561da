"""Sums over the processes of a training: each computes its part of a loss, and the parts add up to the loss.

A loss that is a mean over n values is, in one of several processes, the mean over its own n_k values. Its part of the
loss is n_k / Σ n_k times that. Gradients of the parts are added, not averaged.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from colocam.training.processes import reduce_, world

Count = Callable[[], Tensor]


def shares(counts: Sequence[Count]) -> Sequence[Tensor | float]:
    """n_k / Σ n_k of each count n; the counts are scalars on the training device."""
    if world() == 1:
        return [1.0] * len(counts)
    own = torch.stack([count().double() for count in counts])
    return (own / reduce_(own.clone()).clamp(min=1)).float().unbind()


def sum_scalars(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each scalar, summed over all processes."""
    if world() == 1:
        return parts
    return dict(zip(parts, reduce_(torch.stack(list(parts.values()))).unbind(), strict=True))


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its sum over all processes."""
    if world() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = reduce_(torch.cat([gradient.flatten() for gradient in gradients]))
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()


def all_sum(tensor: Tensor) -> Tensor:
    """The sum over all processes, differentiable: the gradients of all processes flow into each of its terms."""
    summed: Tensor = _AllSum.apply(tensor)
    return summed


class _AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:  # noqa: ANN401, ARG004 - torch's signature
        return reduce_(tensor.clone())

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Tensor:  # noqa: ANN401, ARG004
        return reduce_(outer.clone())
