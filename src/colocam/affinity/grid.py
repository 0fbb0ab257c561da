"""The product on colour cells in plain PyTorch: any device, any floating type, the model for the faster twins.

A pixel in cell (r, g, b) at offset f holds φ = e·(1, f_r, f_g, f_b); ``splat`` adds φ ⊗ v of all pixels to their
cells, ``mix`` applies the kernel between cells axis by axis, ``slice_`` reads Σ_k φ_k·u_k back at each pixel.
"""

import torch
from torch import Tensor

from colocam.affinity.basis import ColorBasis


def encode(rgb: Tensor, basis: ColorBasis, group: Tensor) -> tuple[Tensor, Tensor]:
    """Cell and local coordinates of pixels.

    Args:
        rgb: (N, 3) floating colours in 0–255.
        basis: the cells.
        group: (N,) int64; pixels of different groups do not see each other.

    Returns:
        index (N,) int64 of the cell among groups × cells³, and φ (N, 4).
    """
    position = (rgb + 0.5) * (basis.cells / 256.0)
    cell = position.floor().clamp(0, basis.cells - 1)
    offset = (position - cell - 0.5) * (256.0 / basis.cells)
    bump = torch.exp(-basis.decay * offset.square().sum(1, keepdim=True))
    phi = torch.cat([basis.scale[0] * bump, basis.scale[1] * bump * offset], dim=1)
    r, g, b = cell.long().unbind(1)
    return ((group * basis.cells + r) * basis.cells + g) * basis.cells + b, phi


def splat(index: Tensor, phi: Tensor, values: Tensor, cells: int) -> Tensor:
    """Moments of every cell: index (N,), φ (N, 4), values (N, C) -> (cells, 4, C)."""
    moments = values.new_zeros(cells, 4, values.shape[1])
    return moments.index_add_(0, index, phi[:, :, None] * values[:, None, :])


def slice_(index: Tensor, phi: Tensor, moments: Tensor) -> Tensor:
    """Transpose of ``splat``: moments (cells, 4, C) -> (N, C)."""
    return torch.einsum("nk,nkc->nc", phi, moments[index])


def mix(moments: Tensor, basis: ColorBasis) -> Tensor:
    """Apply the kernel between the cells of each group: (groups·cells³, 4, C) -> the same shape."""
    n = basis.cells
    flat, slope = torch.as_tensor(basis.factor, dtype=moments.dtype, device=moments.device)
    m, r, g, b = moments.view(-1, n, n, n, *moments.shape[1:]).unbind(4)
    # A linear function along one axis meets the constant ones along the other two.
    m, r, g = m_b(m, flat) + m_b(b, slope), m_b(r, flat), m_b(g, flat)
    m, r = m_g(m, flat) + m_g(g, slope), m_g(r, flat)
    m = m_r(m, flat) + m_r(r, slope)
    # … and back, with the transposes in the opposite order.
    m, r = m_r(m, flat.T), m_r(m, slope.T)
    m, g, r = m_g(m, flat.T), m_g(m, slope.T), m_g(r, flat.T)
    m, b, r, g = m_b(m, flat.T), m_b(m, slope.T), m_b(r, flat.T), m_b(g, flat.T)
    return torch.stack([m, r, g, b], dim=4).view_as(moments)


def m_r(grid: Tensor, matrix: Tensor) -> Tensor:
    """Multiply the first colour axis of (S, r, g, b, C)."""
    return torch.einsum("srgbc,rk->skgbc", grid, matrix)


def m_g(grid: Tensor, matrix: Tensor) -> Tensor:
    """Multiply the second colour axis of (S, r, g, b, C)."""
    return torch.einsum("srgbc,gk->srkbc", grid, matrix)


def m_b(grid: Tensor, matrix: Tensor) -> Tensor:
    """Multiply the third colour axis of (S, r, g, b, C)."""
    return torch.einsum("srgbc,bk->srgkc", grid, matrix)


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis) -> Tensor:
    """W·v: rgb (N, 3), values (N, C), group (N,) in 0 … groups-1 -> (N, C)."""
    index, phi = encode(rgb.to(values.dtype), basis, group)
    moments = splat(index, phi, values, groups * basis.cells**3)
    return slice_(index, phi, mix(moments, basis))
