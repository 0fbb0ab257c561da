"""Batch norms over the frames of all processes: the same result as one process with the whole batch.

``torch.nn.SyncBatchNorm`` does not run on a CPU, and on a GPU it makes the host wait in every layer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from colocam.training.processes import rank, reduce_, world
from colocam.training.sums import all_sum


def synchronise_batch_norms(net: nn.Module) -> None:
    """Make all batch norms of ``net``, in training mode, use the mean and variance over all processes."""
    if world() == 1:
        return
    for module in net.modules():
        if isinstance(module, _BatchNorm):
            module.forward = _synchronised(module.forward)  # type: ignore[assignment, method-assign]


def _synchronised(forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def synchronised(x: Tensor) -> Tensor:
        with _Replaced():
            return forward(x)

    return synchronised


class _Replaced(TorchFunctionMode):
    """Replaces ``F.batch_norm``, which also timm's batch norms with an activation call."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        call: Callable[..., object] = batch_norm if func is F.batch_norm else func
        return call(*args, **(kwargs or {}))


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,  # noqa: FBT001, FBT002 - the signature of F.batch_norm
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``F.batch_norm`` over the values of all processes; x (B, C, …), of which B may differ between processes."""
    if not training:
        return F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if x.is_cuda:
        y: Tensor = _CudaBatchNorm.apply(x, weight, bias, running_mean, running_var, momentum, eps)
        return y
    shape, others = [1, -1, *[1] * (x.dim() - 2)], [0, *range(2, x.dim())]
    count = reduce_(x.new_tensor(x.numel() / x.shape[1]))
    mean = all_sum(x.sum(others)) / count
    centred = x - mean.view(shape)
    variance = all_sum(centred.square().sum(others)) / count
    if running_mean is not None and running_var is not None:
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(variance * (count / (count - 1)), momentum)
    y = centred * torch.rsqrt(variance + eps).view(shape)
    if weight is not None:
        y = y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


class _CudaBatchNorm(torch.autograd.Function):
    """As :func:`batch_norm`, from the kernels of ``SyncBatchNorm``."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
    ) -> Tensor:
        x = _dense(x)
        channels = x.shape[1]
        own = torch.cat([*torch.batch_norm_stats(x, eps), x.new_full((1,), x.numel() // channels, dtype=torch.float32)])
        every = torch.zeros(world(), len(own), device=x.device)
        every[rank()] = own
        reduce_(every)
        parts = every[:, :channels], every[:, channels:-1], every[:, -1]
        means, deviations, counts = (part.contiguous() for part in parts)
        mean, deviation = torch.batch_norm_gather_stats_with_counts(
            x, means, deviations, running_mean, running_var, momentum, eps, counts
        )
        ctx.save_for_backward(x, weight, mean, deviation, counts.to(torch.int32))
        y: Tensor = torch.batch_norm_elemt(x, weight, bias, mean, deviation, eps)
        return y

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        x, weight, mean, deviation, counts = ctx.saved_tensors
        outer = _dense(outer)
        of_all = (True, weight is not None, weight is not None)
        sums, products, of_weight, of_bias = torch.batch_norm_backward_reduce(
            outer, x, mean, deviation, weight, *of_all
        )
        sums, products = reduce_(torch.stack([sums, products])).unbind()
        of_x = torch.batch_norm_backward_elemt(outer, x, mean, deviation, weight, sums, products, counts)
        return of_x, of_weight, of_bias, None, None, None, None


def _dense(x: Tensor) -> Tensor:
    return x if x.is_contiguous(memory_format=torch.channels_last) else x.contiguous()
