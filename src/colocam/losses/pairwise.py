"""The pairwise energy R = Σ_r S_rᵀ W (1 - S_r) that eq. 2 and eq. 4 share, and how such a loss is differentiated.

With S⁰ = 1 - S¹, D = S¹ - ½ and symmetric W, R = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S¹ = -4·WD: one product gives both.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from colocam.affinity import engine, graphs

Compute = Callable[..., tuple[Tensor, Tensor]]


class Term(NamedTuple):
    """A scalar function of maps whose value and gradient come together.

    Attributes:
        maps: (F, H, W).
        compute: a function of a module, (s, rgb, *others, gaussian, *options) -> value and ∂value/∂s (F, P). It gets
            the maps as s (F, P) float32, or float64 if they are, and the frames as (F, 3, P), outside autocast.
        constants: the frames (F, 3, H, W) in 0–255, and the tensors that ``compute`` needs besides.
        options: the affinity, an ``engine.Gaussian``, and what else is no tensor.
    """

    maps: Tensor
    compute: Compute
    constants: tuple[Tensor, ...]
    options: tuple[Any, ...]

    def differentiable(self) -> Tensor:
        """The scalar, known to autograd."""
        out: Tensor = _Loss.apply(*self)
        return out

    def value_and_gradient(self) -> tuple[Tensor, Tensor]:
        """The scalar and ∂value/∂maps (F, H, W) in the maps' type, both unknown to autograd."""
        with torch.no_grad():
            value, gradient = _value_and_gradient(*self)
            return value, gradient.to(self.maps.dtype)


def _value_and_gradient(
    maps: Tensor, compute: Compute, constants: tuple[Tensor, ...], options: tuple[Any, ...]
) -> tuple[Tensor, Tensor]:
    """Value, and gradient (F, H, W) as ``_both`` returns it, by a replay where one is possible."""
    if engine.replayable(constants[0], maps, options[0]):
        value, gradient = graphs.replay(_both, (maps, *constants), (compute, *options))
        return value, gradient
    return _both(maps, *constants, compute, *options)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        maps: Tensor,
        compute: Compute,
        constants: tuple[Tensor, ...],
        options: tuple[Any, ...],
    ) -> Tensor:
        value, gradient = _value_and_gradient(maps, compute, constants, options)
        ctx.save_for_backward(gradient)
        ctx.dtype = maps.dtype
        return value

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        # The guard against a second derivative takes longer than the pass, and is needed only where one is prepared.
        scaled = _guarded(ctx, outer) if torch.is_grad_enabled() else _scaled(ctx, outer)
        return scaled, None, None, None


def _scaled(ctx: Any, outer: Tensor) -> Tensor:  # noqa: ANN401
    (gradient,) = ctx.saved_tensors
    result: Tensor = outer * gradient
    return result if result.dtype == ctx.dtype else result.to(ctx.dtype)


_guarded: Callable[[Any, Tensor], Tensor] = once_differentiable(_scaled)


def _both(maps: Tensor, frames: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
    """Value, and gradient (F, H, W) in the type that it was computed in, which no small weight underflows."""
    others = [x for x in rest if isinstance(x, Tensor)]
    compute, *options = rest[len(others) :]
    with torch.autocast(maps.device.type, enabled=False):
        s = (maps if maps.dtype == torch.float64 else maps.float()).flatten(1)
        value, gradient = compute(s, frames.flatten(2), *others, *options)
    return value.to(s.dtype), gradient.view(maps.shape)


def on_kernels(tensor: Tensor) -> bool:
    """Whether the small steps around the product run as Triton kernels, where each launch counts."""
    return tensor.is_cuda and tensor.dtype == torch.float32


def energies(totals: Tensor) -> Tensor:
    """R of each group from its sums 1ᵀW1 and DᵀWD: (groups, 2) -> (groups,)."""
    return 0.5 * totals[:, 0] - 2 * totals[:, 1]
