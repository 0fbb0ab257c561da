"""The pairwise energy Σ_r S_rᵀ W (1 - S_r) that eq. 2 and eq. 4 share, with its gradient from the same two products."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def energy_and_gradient(maps: Tensor, degree: Tensor, smoothed: Tensor) -> tuple[Tensor, Tensor]:
    """Energy of each pixel, R = 2 Σ_i S_i (W1 - WS)_i, and ∂R/∂S = 2 W1 - 4 WS, for S⁰ = 1 - S¹ and symmetric W.

    Args:
        maps: S, any shape.
        degree: W·1, the same shape.
        smoothed: W·S, the same shape.
    """
    return 2 * maps * (degree - smoothed), 2 * degree - 4 * smoothed


def attach_gradient(maps: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """The scalar ``value`` as a function of ``maps`` whose derivative is ``gradient``, computed beforehand."""
    out: Tensor = _Known.apply(maps, value, gradient)
    return out


class _Known(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, value: Tensor, gradient: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(gradient)
        ctx.dtype = maps.dtype
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return (outer * gradient).to(ctx.dtype), None, None
