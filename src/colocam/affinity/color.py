"""``W·v`` for colour affinities over any number of pixels."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from colocam.affinity import grid
from colocam.affinity.basis import color_basis


def color_product(
    rgb: Tensor,
    values: Tensor,
    sigma: float = 15.0,
    tol: float = 5e-3,
    *,
    sequences: Tensor | None = None,
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ²) between all pixels of a sequence, self-affinity included.

    Args:
        rgb: (…, N, 3) colours in 0–255, floating or uint8. Not differentiated.
        values: (…, N, C) floating. Differentiable: W is symmetric, so the gradient is one more product.
        sigma: width of the Gaussian in colour levels.
        tol: relative L2 error to aim at.
        sequences: integer ids from 0, broadcastable to (…, N); pixels with one id form one sequence, so that frames
            are joined, or sequences of different lengths share a call. By default each leading index is a sequence.

    Returns:
        (…, N, C), the type of ``values``.
    """
    shape = values.shape[:-1]
    if sequences is None:
        sequences = torch.arange(shape[:-1].numel(), device=values.device).view(*shape[:-1], 1)
    group = sequences.to(values.device, torch.int64).expand(shape).reshape(-1)
    flat = values.reshape(-1, values.shape[-1])
    out: Tensor = _Product.apply(rgb.reshape(-1, 3), flat, group, float(sigma), float(tol))
    return out.view(values.shape)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, group: Tensor, sigma: float, tol: float) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(rgb, group)
        ctx.sigma, ctx.tol = sigma, tol
        return _multiply(rgb, values, group, sigma, tol)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        rgb, group = ctx.saved_tensors
        return None, _multiply(rgb, gradient, group, ctx.sigma, ctx.tol), None, None, None


def _multiply(rgb: Tensor, values: Tensor, group: Tensor, sigma: float, tol: float) -> Tensor:
    groups = int(group.max()) + 1
    with torch.autocast(values.device.type, enabled=False):
        wide = values if values.dtype == torch.float64 else values.float()
        return grid.product(rgb, wide, group, groups, color_basis(sigma, tol)).to(values.dtype)
