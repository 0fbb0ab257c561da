"""``W·v`` for colour × space affinities, frame by frame."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from colocam.affinity import grid
from colocam.affinity.basis import color_basis, space_basis


def bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame, self-affinity included.

    Args:
        rgb: (B, 3, H, W) colours in 0–255, floating or uint8. Not differentiated.
        values: (B, C, H, W) floating, differentiable.
        sigma_rgb: width of the Gaussian in colour levels.
        sigma_xy: width of the Gaussian in pixels.
        tol: relative L2 error to aim at.

    Returns:
        (B, C, H, W), the type of ``values``.
    """
    out: Tensor = _Product.apply(rgb, values, float(sigma_rgb), float(sigma_xy), float(tol))
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, sigma_rgb: float, sigma_xy: float, tol: float) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(rgb)
        ctx.constants = sigma_rgb, sigma_xy, tol
        return _multiply(rgb, values, sigma_rgb, sigma_xy, tol)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (rgb,) = ctx.saved_tensors
        return None, _multiply(rgb, gradient, *ctx.constants), None, None, None


def _multiply(rgb: Tensor, values: Tensor, sigma_rgb: float, sigma_xy: float, tol: float) -> Tensor:
    """Σ_k ψ_k · C(ψ_k · v), C the colour product of a frame."""
    basis = color_basis(sigma_rgb, tol)
    wide = torch.float64 if values.dtype == torch.float64 else torch.float32
    psi = torch.as_tensor(space_basis(*rgb.shape[-2:], sigma_xy, tol / 2), dtype=wide, device=values.device)
    with torch.autocast(values.device.type, enabled=False):
        return torch.stack([_frame(c, v.to(wide), psi, basis) for c, v in zip(rgb, values, strict=True)]).to(
            values.dtype
        )


def _frame(rgb: Tensor, values: Tensor, psi: Tensor, basis: grid.ColorBasis) -> Tensor:
    """One frame: rgb (3, H, W), values (C, H, W), psi (R, H, W) -> (C, H, W)."""
    colors = rgb.to(values.dtype).flatten(1).T
    index, phi = grid.encode(colors, basis, colors.new_zeros(len(colors), dtype=torch.int64))
    weighted = (psi[:, None] * values).flatten(2)  # (R, C, P)
    moments = grid.splat(index, phi, weighted.flatten(0, 1).T, basis.cells**3)
    out = grid.slice_(index, phi, grid.mix(moments, basis)).T.view(*psi.shape[:1], *values.shape)
    return (psi[:, None] * out).sum(0)
