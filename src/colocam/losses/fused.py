"""Launches of the losses' kernels."""

import torch
from torch import Tensor

from colocam.losses import pairwise_kernels as kernels


def weigh(totals: Tensor, group: Tensor, *, adaptive: bool, by_energy: bool) -> tuple[Tensor, Tensor]:
    """Twin of ``coloc.weigh``: totals (groups, 2), group (F,) -> value (scalar), weights (groups,)."""
    groups = len(totals)
    weights = torch.empty(groups, device=totals.device)
    value = torch.empty((), device=totals.device)
    block = max(16, 1 << (groups - 1).bit_length())
    kernels.weigh[(1,)](
        totals, group, weights, value, len(group), groups,
        adaptive=adaptive, by_energy=by_energy, block_f=16, block_g=block, num_warps=4,
    )  # fmt: skip
    return value, weights


def scale_(product: Tensor, group: Tensor, weights: Tensor) -> Tensor:
    """Multiply product (F, P), contiguous, by -4 · weights[group] in place: weights (groups,)."""
    frames, pixels = product.shape
    kernels.scale[-(-pixels // 1024), frames](product, group, weights, pixels, block=1024, num_warps=4)
    return product
