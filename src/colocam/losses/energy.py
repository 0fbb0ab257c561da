"""The pairwise energy R = Σ_r S_rᵀ W (1 - S_r) that eq. 2 and eq. 4 share.

With S⁰ = 1 - S¹, D = S¹ - ½ and symmetric W, R = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S¹ = -4·WD: one product gives both.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Energy(NamedTuple):
    """A weighted sum of energies, Σ_g weight_g · R_g, and what its gradient needs.

    Attributes:
        value: the sum, scalar.
        weights: (groups,).
        group: (F,) int64, group of each frame.
        product: WD, (F, P).
    """

    value: Tensor
    weights: Tensor
    group: Tensor
    product: Tensor


def differentiable(maps: Tensor, compute: Callable[[Tensor], Energy]) -> Tensor:
    """The value of ``compute`` as a function of ``maps`` (F, H, W); weights count as constants.

    ``compute`` gets the maps as (F, P) float32, or float64 if they are, outside autocast.
    """
    out: Tensor = _Energy.apply(maps, compute)
    return out


class _Energy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, compute: Callable[[Tensor], Energy]) -> Tensor:  # noqa: ANN401
        with torch.autocast(maps.device.type, enabled=False):
            energy = compute((maps if maps.dtype == torch.float64 else maps.float()).flatten(1))
        ctx.save_for_backward(energy.weights, energy.group, energy.product)
        ctx.shape, ctx.dtype = maps.shape, maps.dtype
        return energy.value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        weights, group, product = ctx.saved_tensors
        if on_kernels(product):
            from colocam.losses import fused  # noqa: PLC0415  Triton is not everywhere

            return fused.scale(product, group, weights, outer, ctx.dtype).view(ctx.shape), None
        scale = -4 * outer * weights[group]
        return (scale[:, None] * product).to(ctx.dtype).view(ctx.shape), None


def on_kernels(tensor: Tensor) -> bool:
    """Whether the small steps around the product run as Triton kernels, where each launch counts."""
    return tensor.is_cuda and tensor.dtype == torch.float32


def energies(totals: Tensor) -> Tensor:
    """R of each group from its sums 1ᵀW1 and DᵀWD: (groups, 2) -> (groups,)."""
    return 0.5 * totals[:, 0] - 2 * totals[:, 1]
