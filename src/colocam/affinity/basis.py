"""The two small bases that make a dense Gaussian affinity cheap, both chosen from a tolerance.

*Colour.* Cut each colour axis into cells of width h. Inside a cell, with f the offset from its centre, a Gaussian of
width σ ≫ h is nearly a combination of the functions e(f) and f·e(f), e(f) = exp(-β f² / 2σ²); in three dimensions of
e, f_r·e, f_g·e and f_b·e. A pixel is then four numbers in one cell. Projected on them the kernel factorises over the
axes, and along each axis it has few eigenvalues above the tolerance: W ≈ Φ (U⊗U⊗U) (U⊗U⊗U)ᵀ Φᵀ, symmetric and positive
semi-definite by construction.

*Space.* A Gaussian that is wide beside the frame has few eigenvectors along y and x: W_xy ≈ Σ_k ψ_k ψ_kᵀ.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

# β: 1 is best where all pixels have one colour, 0 where colours are uniform; between them both err little.
FLATTENING = 0.85
# Relative L2 error over (h/σ)², the largest seen on photographs, noise and few-colour images.
_ERROR_PER_WIDTH = 0.07
# One cell for each of the 256 levels: offsets of 8-bit colours vanish and the cells add no error.
MAX_CELLS = 256


@dataclass(frozen=True, eq=False)
class ColorBasis:
    """Cells along one colour axis and the factor of the kernel between them.

    Attributes:
        cells: number of cells over the levels -0.5 … 255.5.
        decay: a pixel at offset f weighs exp(-decay·|f|²).
        scale: (scale of the constant, scale of each linear function), for three dimensions.
        factor: (2, cells, rank) float64, U of the constant and of the linear function of each cell.
    """

    cells: int
    decay: float
    scale: tuple[float, float]
    factor: npt.NDArray[np.float64]

    @property
    def rank(self) -> int:
        """Eigenvectors kept along each axis."""
        return self.factor.shape[2]


def cells_for(sigma: float, tol: float) -> int:
    """Cells along an axis that keep the relative L2 error of a colour product near or below ``tol``."""
    cells = int(np.ceil(256.0 / sigma * np.sqrt(_ERROR_PER_WIDTH / tol)))
    return max(4, -(-cells // 4) * 4)


@lru_cache(maxsize=32)
def color_basis(sigma: float, tol: float) -> ColorBasis:
    """Basis of exp(-|c - c'|² / 2σ²) on 0–255 with relative error about ``tol``, at most ``MAX_CELLS`` cells an axis."""
    cells = min(cells_for(sigma, tol), MAX_CELLS)
    width = 256.0 / cells
    nodes, weights = np.polynomial.legendre.leggauss(12)
    offset, weights = nodes * width / 2, weights / 2
    bump = np.exp(-FLATTENING * offset**2 / (2 * sigma**2))
    local = np.stack([bump, offset * bump])
    scale = 1 / np.sqrt(local**2 @ weights)
    local *= scale[:, None]

    # The projected kernel depends on the difference of two cells only: (cells, 2, 2) blocks of a Toeplitz matrix.
    gap = np.arange(cells)[:, None, None] * width + offset[:, None] - offset
    blocks = np.einsum("aq,dqp,bp->dab", local * weights, np.exp(-(gap**2) / (2 * sigma**2)), local * weights)
    difference = np.arange(cells)[:, None] - np.arange(cells)
    kernel = np.where(difference[..., None, None] >= 0, blocks[abs(difference)], blocks[abs(difference)].swapaxes(2, 3))
    values, vectors = np.linalg.eigh(kernel.transpose(2, 0, 3, 1).reshape(2 * cells, 2 * cells))
    factor = (vectors * np.sqrt(values.clip(0)))[:, ::-1]

    rank = _rank(factor[:cells] ** 2, tol / 30)
    factor = np.ascontiguousarray(factor[:, :rank]).reshape(2, cells, rank)
    return ColorBasis(cells, FLATTENING / (2 * sigma**2), (scale[0] ** 3, scale[0] ** 2 * scale[1]), factor)


def _rank(energy: npt.NDArray[np.float64], tail: float) -> int:
    """Columns to keep so that what is left out adds at most ``tail`` to any diagonal entry: energy (points, columns)."""
    left_out = energy[:, ::-1].cumsum(axis=1)[:, ::-1].max(axis=0)
    return max(1, int((left_out > tail).sum()))


@lru_cache(maxsize=32)
def space_basis(height: int, width: int, sigma: float, tol: float) -> npt.NDArray[np.float64]:
    """Basis ψ (R, height, width) of exp(-|p - p'|² / 2σ²) over the pixels of a frame: W_xy ≈ Σ_k ψ_k ψ_kᵀ.

    The products of the eigenvectors along y and x with the largest eigenvalues are kept, until the rest holds at most
    ``tol`` of the Frobenius norm of W_xy.
    """
    axes = []
    for size in (height, width):
        gap = np.arange(size)[:, None] - np.arange(size)
        values, vectors = np.linalg.eigh(np.exp(-(gap**2) / (2 * sigma**2)))
        axes.append((values[::-1].clip(0), vectors[:, ::-1]))
    (value_y, vector_y), (value_x, vector_x) = axes
    value = np.outer(value_y, value_x)
    order = np.argsort(value, axis=None)[::-1]
    squares = value.ravel()[order] ** 2
    rank = 1 + int((squares.sum() - squares.cumsum() > tol**2 * squares.sum()).sum())
    iy, ix = np.unravel_index(order[:rank], value.shape)
    return np.einsum("k,yk,xk->kyx", np.sqrt(value[iy, ix]), vector_y[:, iy], vector_x[:, ix])
