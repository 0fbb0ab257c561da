"""The product on colour cells in plain PyTorch, for any device and floating type; ``cpu`` and ``cuda`` do the same.

A pixel in cell (r, g, b) at offset f holds φ = e·(1, f_r, f_g, f_b); ``splat`` adds φ ⊗ v of all pixels to their
cells, ``mix`` applies the kernel between cells axis by axis, ``slice_`` reads Σ_i φ_i·u_i back at each pixel.
"""

import torch
from torch import Tensor

from colocam.losses.affinity.basis import ColorBasis


def encode(rgb: Tensor, basis: ColorBasis, group: Tensor) -> tuple[Tensor, Tensor]:
    """Cell and local coordinates of pixels.

    Args:
        rgb: (F, 3, P) floating colours in 0–255.
        basis: the cells.
        group: (F,) int64; there is no affinity between frames of different groups.

    Returns:
        index (F·P,) int64 of the cell among groups × cells³, and φ (F·P, 4).
    """
    shifts = torch.tensor(basis.shifts, dtype=rgb.dtype, device=rgb.device)[:, None]
    position = ((rgb + 0.5) * basis.per_level + shifts).clamp(-0.5, basis.cells + 0.5)
    cell = position.floor().clamp(0, basis.cells - 1)
    offset = position - cell - 0.5
    bump = (1 - basis.curvature * offset.square()).prod(1, keepdim=True)
    phi = torch.cat([basis.scale[0] * bump, basis.scale[1] * bump * offset], dim=1)
    r, g, b = cell.nan_to_num().long().unbind(1)
    index = ((group[:, None] * basis.cells + r) * basis.cells + g) * basis.cells + b
    return index.flatten(), phi.transpose(1, 2).flatten(0, 1)


def splat(index: Tensor, phi: Tensor, values: Tensor, cells: int) -> Tensor:
    """Moments of every cell: index (N,), φ (N, 4), values (N, C) -> (cells, 4, C)."""
    moments = values.new_zeros(cells, 4, values.shape[1])
    return moments.index_add_(0, index, phi[:, :, None] * values[:, None, :])


def slice_(index: Tensor, phi: Tensor, moments: Tensor) -> Tensor:
    """Transpose of ``splat``: moments (cells, 4, C) -> (N, C)."""
    return torch.einsum("nk,nkc->nc", phi, moments[index])


def mix(moments: Tensor, basis: ColorBasis) -> Tensor:
    """Apply the kernel between the cells of each group: (groups·cells³, 4, C) -> the same shape."""
    n, rank, channels = basis.cells, basis.rank, moments.shape[2]
    over_b, over_g, over_r = (torch.as_tensor(m, dtype=moments.dtype, device=moments.device) for m in basis.matrices)
    x = over_b @ moments.view(-1, 4 * n, channels)
    x = over_g @ x.view(-1, 3 * n, rank * channels)
    x = over_r @ x.view(-1, 2 * n, rank * rank * channels)
    x = over_g.T @ x.view(-1, 2 * rank, rank * channels)
    x = over_b.T @ x.view(-1, 3 * rank, channels)
    return x.view_as(moments)


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None) -> Tensor:
    """Σ_k ψ_k · C(ψ_k · v), C the colour product within each group of frames.

    Args:
        rgb: (F, 3, P).
        values: (F, C, P) floating.
        group: (F,) int64 index of each frame's group, 0 … groups-1.
        groups: number of groups.
        basis: of the colour kernel.
        psi: (R, P) basis of the spatial kernel; the constant 1 where None.

    Returns:
        (F, C, P).
    """
    frames, channels, pixels = values.shape
    index, phi = encode(rgb.to(values.dtype), basis, group)
    out = torch.zeros_like(values)
    for weight in values.new_ones(1, pixels) if psi is None else psi:
        flat = (weight * values).transpose(1, 2).reshape(-1, channels)
        mixed = mix(splat(index, phi, flat, groups * basis.cells**3), basis)
        out += weight * slice_(index, phi, mixed).view(frames, pixels, channels).transpose(1, 2)
    return out


def energy(
    rgb: Tensor, maps: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The sums 1ᵀW1 and DᵀWD of each group, and WD, where D = S - ½.

    Maps S (F, P) -> totals (groups, 2) float64, WD (F, P).
    """
    values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
    out = product(rgb, values, group, groups, basis, psi)
    totals = torch.zeros(groups, 2, dtype=torch.float64, device=maps.device)
    totals.index_add_(0, group, (values * out).sum(2, dtype=torch.float64))
    return totals, out[:, 1]
