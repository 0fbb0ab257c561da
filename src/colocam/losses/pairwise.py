"""The pairwise energy R(S) = Σ_r S_rᵀ W (1 - S_r) of eq. 2 and eq. 4, as a differentiable weighted sum over groups.

With S⁰ = 1 - S¹, D = S¹ - ½ and symmetric W, R = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S¹ = -4·WD: one product W·D gives both.
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from colocam.affinity import engine
from colocam.errors import ColocamError
from colocam.utils.tensors import require_finite


class Weights(NamedTuple):
    """Weights w_g of the sum Σ_g w_g R_g over groups of frames; no gradient flows through them.

    w_g = 1 / (number of counted groups · divisor of g), and 0 for groups that are not counted.

    Attributes:
        least: frames that a group needs to be counted; 1 if every group has a frame.
        divisor: ``none`` is 1, ``affinity`` is Σ_r S_rᵀ W S_r = 1ᵀW1 - R_g, ``energy`` is R_g. The latter two are
            kept above 1e-6 of 1ᵀW1.
    """

    least: int = 1
    divisor: Literal["none", "affinity", "energy"] = "none"


def weighted_energy(
    name: str,
    frames: Tensor,
    maps: Tensor,
    group: Tensor,
    groups: int,
    gaussian: engine.Gaussian,
    weights: Weights,
) -> Tensor:
    """Σ_g w_g R_g, differentiable once with respect to the maps.

    Args:
        name: of the loss, for error messages.
        frames: (B, 3, H, W) in 0–255.
        maps: S¹, (B, H, W).
        group: (B,) int64 index of the group of each frame, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity W.
        weights: w.

    Returns:
        Scalar, float32, or float64 if the maps are.
    """
    shape = frames.shape
    if len(shape) != 4 or shape[1] != 3 or maps.shape != (shape[0], shape[2], shape[3]):
        raise ColocamError(
            f"{name}: needs frames (B, 3, H, W) and maps (B, H, W), got {tuple(shape)} and {tuple(maps.shape)}"
        )
    if frames.requires_grad:
        raise ColocamError(f"{name}: frames must not require a gradient; pass frames.detach()")
    require_finite(name, frames=frames, maps=maps)
    value: Tensor = _WeightedEnergy.apply(maps, frames, group, groups, gaussian, weights)
    return value


class _WeightedEnergy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        maps: Tensor,
        frames: Tensor,
        group: Tensor,
        groups: int,
        gaussian: engine.Gaussian,
        weights: Weights,
    ) -> Tensor:
        value, gradient = _value_and_gradient(maps, frames, group, groups, gaussian, weights)
        ctx.save_for_backward(gradient)
        ctx.dtype = maps.dtype
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return (outer * gradient).to(ctx.dtype), None, None, None, None, None


def _value_and_gradient(
    maps: Tensor, frames: Tensor, group: Tensor, groups: int, gaussian: engine.Gaussian, weights: Weights
) -> tuple[Tensor, Tensor]:
    """Scalar, and ∂/∂maps (B, H, W) in at least float32, so that small weights λ do not underflow."""
    with torch.autocast(maps.device.type, enabled=False):
        s = (maps if maps.dtype == torch.float64 else maps.float()).flatten(1)
        totals, product = engine.energy(frames.flatten(2), s, group, groups, gaussian)
        if engine.on_kernels(s):
            value, gradient = _weigh_on_kernels(totals, product, group, weights)
        else:
            value, each = weigh(totals, group, weights)
            gradient = (-4 * each.to(s.dtype))[group, None] * product
    return value.to(s.dtype), gradient.view(maps.shape)


def weigh(totals: Tensor, group: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Σ_g w_g R_g (scalar) and w (groups,) from the sums 1ᵀW1 and DᵀWD of each group, totals (groups, 2) float64."""
    mass, energy = totals[:, 0], 0.5 * totals[:, 0] - 2 * totals[:, 1]
    counted = (group.bincount(minlength=len(totals)) >= weights.least).to(totals.dtype)
    each = counted / counted.sum().clamp(min=1)
    if weights.divisor != "none":
        divisor = energy if weights.divisor == "energy" else mass - energy
        each = each / divisor.abs().maximum(1e-6 * mass).clamp(min=1e-300)
    return (each * energy).sum(), each


def _weigh_on_kernels(totals: Tensor, product: Tensor, group: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """:func:`weigh` and the gradient -4·w·WD in two launches, where plain PyTorch needs a dozen."""
    from colocam.losses import pairwise_kernels as kernels  # noqa: PLC0415 - Triton is not everywhere

    (frames, pixels), groups = product.shape, len(totals)
    value, each = product.new_empty(()), product.new_empty(groups)
    kernels.weigh[(1,)](
        totals, group, each, value, frames, groups, least=weights.least, divisor=weights.divisor,
        block_f=16, block_g=max(16, 1 << (groups - 1).bit_length()), num_warps=4,
    )  # fmt: skip
    gradient = product.contiguous()
    kernels.scale[-(-pixels // 1024), frames](gradient, group, each, pixels, block=1024, num_warps=4)
    return value, gradient
