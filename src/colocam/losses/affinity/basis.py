"""The two small bases that make products with a dense Gaussian affinity cheap; their sizes follow from a tolerance.

*Color.* Cut each color axis into cells of width h. Inside a cell, with f = -½ … ½ the offset from its center, a
Gaussian of width σ > h is nearly a combination of e(f) and f·e(f), where e(f) = 1 - q f²; in three dimensions, of e,
f_r·e, f_g·e and f_b·e with e = e(f_r) e(f_g) e(f_b). A pixel is then four numbers in one cell. Projected on these
functions the kernel factorises over the axes, and along each axis few eigenvalues exceed the tolerance:
W ≈ Φ (U⊗U⊗U) (U⊗U⊗U)ᵀ Φᵀ, symmetric and positive semi-definite by construction.

The cells of b are shifted by a third of a cell and those of g by two thirds. Otherwise, where the three axes agree, as
in gray images, their errors would add up.

*Space.* A Gaussian that is wide compared with the frame has few large eigenvalues along y and x: W_xy ≈ Σ_k ψ_k ψ_kᵀ.

Tests: tests/losses/affinity/test_products.py.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

# q divided by (h/σ)²/2: 1 is best if all pixels have one color, 0 if colors are uniform; 0.85 is good for both.
_CURVATURE = 0.85
# Relative L2 error divided by (h/σ)²: the largest measured on photographs, gray images, noise, images of few colors.
_ERROR_PER_WIDTH = 0.068
# Of the cells of r, g and b, in cells.
_SHIFTS = 0.0, 2 / 3, 1 / 3
# Cells of an axis that the shifts need: the largest, and a sixth so that axes of which one falls as the other rises
# (r + b = 255 in rainbow palettes) do not agree either.
_SPARE = 5 / 6
# One cell for each of the 256 levels: offsets of 8-bit colors vanish and the cells add no error.
MAX_CELLS = 256


@dataclass(frozen=True, eq=False)
class ColorBasis:
    """Cells along one color axis and the factor of the kernel between them.

    Attributes:
        cells: number of cells; with the shifts of all axes they cover the levels -0.5 … 255.5.
        per_level: cells per color level.
        shifts: of the cells of r (0), g and b, in cells: level c of an axis lies at (c + ½)·per_level + shift.
        curvature: q, a pixel at offset f weighs e(f) = 1 - q f² along each axis.
        scale: of e, and of f_r·e, f_g·e and f_b·e, which gives each a mean square of 1 in its cell.
        factor: (2, cells, rank) float64, U of the constant and of the linear function of each cell.
        tol: the relative error that the basis was chosen for.
    """

    cells: int
    per_level: float
    shifts: tuple[float, float, float]
    curvature: float
    scale: tuple[float, float]
    factor: npt.NDArray[np.float64]
    tol: float

    @property
    def rank(self) -> int:
        """Eigenvectors kept along each axis."""
        return int(self.factor.shape[2])

    @cached_property
    def matrices(self) -> tuple[npt.NDArray[np.float64], ...]:
        """The three matrices that take moments to the spectrum's middle, one axis each; see ``cuda``.

        A linear function along one axis is multiplied by constant ones along the other two. So of the four moments of
        a cell three kinds of sums over b remain (constant, linear along r, linear along g), then two sums over g.
        """
        cells, rank = self.cells, self.rank
        flat, slope = self.factor.swapaxes(1, 2)
        over_b = np.zeros((3, rank, cells, 4))
        over_b[0, :, :, 0], over_b[0, :, :, 3] = flat, slope
        over_b[1, :, :, 1] = over_b[2, :, :, 2] = flat
        over_g = np.zeros((2, rank, cells, 3))
        over_g[0, :, :, 0], over_g[0, :, :, 2], over_g[1, :, :, 1] = flat, slope, flat
        stacked = self.factor.swapaxes(0, 1).reshape(2 * cells, rank)
        return over_b.reshape(3 * rank, 4 * cells), over_g.reshape(2 * rank, 3 * cells), stacked @ stacked.T


def cells_for(sigma: float, tol: float) -> int:
    """Cells along an axis that keep the relative L2 error of a color product near or below ``tol``."""
    cells = math.ceil(256.0 / sigma * math.sqrt(_ERROR_PER_WIDTH / tol) + _SPARE)
    return max(4, -(-cells // 4) * 4)


@lru_cache(maxsize=32)
def color_basis(sigma: float, tol: float) -> ColorBasis:
    """Basis of exp(-|c - c'|² / 2σ²) on 0–255 with relative error near ``tol``, at most ``MAX_CELLS`` cells an axis."""
    needed = cells_for(sigma, tol)
    cells = min(needed, MAX_CELLS)
    shifts, spare = (_SHIFTS, _SPARE) if needed <= MAX_CELLS else ((0.0, 0.0, 0.0), 0.0)
    per_level = (cells - spare) / 256
    h = 1 / (per_level * sigma)
    curvature = _CURVATURE * h**2 / 2
    nodes, weights = np.polynomial.legendre.leggauss(12)
    if needed > MAX_CELLS:
        # The caller ensures that colors are whole levels, so all pixels lie in the centers of their cells.
        nodes, weights = np.zeros(1), np.full(1, 2.0)
    offset, weights = nodes / 2, weights / 2
    local = np.stack([1 - curvature * offset**2, offset - curvature * offset**3])
    scale = 1 / np.sqrt((local**2 @ weights).clip(min=1e-9))
    local *= scale[:, None]

    # The projected kernel depends on the difference of two cells only: (cells, 2, 2) blocks of a Toeplitz matrix.
    gap = (np.arange(cells)[:, None, None] + offset[:, None] - offset) * h
    blocks = np.einsum("aq,dqp,bp->dab", local * weights, np.exp(-(gap**2) / 2), local * weights)
    difference = np.arange(cells)[:, None] - np.arange(cells)
    kernel = np.where(difference[..., None, None] >= 0, blocks[abs(difference)], blocks[abs(difference)].swapaxes(2, 3))
    values, vectors = np.linalg.eigh(kernel.transpose(2, 0, 3, 1).reshape(2 * cells, 2 * cells))
    factor = (vectors * np.sqrt(values.clip(0)))[:, ::-1]

    rank = _rank(factor[:cells] ** 2, tol / 30)
    factor = np.ascontiguousarray(factor[:, :rank]).reshape(2, cells, rank)
    return ColorBasis(cells, per_level, shifts, curvature, (scale[0] ** 3, scale[0] ** 2 * scale[1]), factor, tol)


def _rank(energy: npt.NDArray[np.float64], tail: float) -> int:
    """Columns of energy (points, columns) to keep so that the rest adds at most ``tail`` to any diagonal entry of W.

    Rounded up to a multiple of four, the width of the vectors that the products are computed with.
    """
    left_out = energy[:, ::-1].cumsum(axis=1)[:, ::-1].max(axis=0)
    return min(-(-int((left_out > tail).sum()) // 4) * 4, int(energy.shape[1]))


@lru_cache(maxsize=32)
def _eigen(size: int, sigma: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenvalues (size,), the largest first, and eigenvectors (size, size) of the Gaussian along one axis."""
    gap = np.arange(size)[:, None] - np.arange(size)
    values, vectors = np.linalg.eigh(np.exp(-(gap**2) / (2 * sigma**2)))
    return values[::-1].clip(0), vectors[:, ::-1]


def _largest(height: int, width: int, sigma: float, tol: float) -> tuple[npt.NDArray[Any], ...]:
    """The largest eigenvalues (R,) of W_xy, and their y and x: the rest holds at most ``tol`` of its Frobenius norm."""
    value = np.outer(_eigen(height, sigma)[0], _eigen(width, sigma)[0])
    order = np.argsort(value, axis=None)[::-1]
    squares = value.ravel()[order] ** 2
    rank = 1 + int((squares.sum() - squares.cumsum() > tol**2 * squares.sum()).sum())
    iy, ix = np.unravel_index(order[:rank], value.shape)
    return value[iy, ix], iy, ix


@lru_cache(maxsize=32)
def space_rank(height: int, width: int, sigma: float, tol: float) -> int:
    """Number of functions in ``space_basis``."""
    return len(_largest(height, width, sigma, tol)[0])


@lru_cache(maxsize=32)
def space_basis(height: int, width: int, sigma: float, tol: float) -> npt.NDArray[np.float64]:
    """Basis ψ (R, height, width) of exp(-|p - p'|² / 2σ²) over the pixels of a frame: W_xy ≈ Σ_k ψ_k ψ_kᵀ.

    The products of the eigenvectors along y and x with the largest eigenvalues are kept.
    """
    value, iy, ix = _largest(height, width, sigma, tol)
    along_y, along_x = _eigen(height, sigma)[1], _eigen(width, sigma)[1]
    psi: npt.NDArray[np.float64] = np.einsum("k,yk,xk->kyx", np.sqrt(value), along_y[:, iy], along_x[:, ix])
    return psi
