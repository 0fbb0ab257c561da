"""The product on a CUDA device: sizes and launches of the Triton kernels."""

from contextlib import nullcontext
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from colocam.affinity import graphs, kernels
from colocam.affinity.basis import ColorBasis

# Moments held at once; groups beyond that are computed in turn. The second-level cache holds about half of it.
_WORKSPACE = 96 << 20
# Pixels of one group that share a copy of its cells: atomics to one address wait for each other.
_PIXELS_PER_COPY = 600_000
_MAX_COPIES = 4
_THREADS = 128
_SPLAT_RUN = 8
_SLICE_RUN = 4


@lru_cache(maxsize=32)
def _matrices(basis: ColorBasis, precision: str, device: torch.device) -> tuple[Tensor, ...]:
    """The five matrices of ``grid.mix`` on the device, rounded to what the matrix units read."""
    over_b, over_g, over_r = (m.astype(np.float32) for m in basis.matrices)
    if precision == "tf32":
        for m in (over_b, over_g, over_r):
            m.view(np.int32)[:] = (m.view(np.int32) + 0x1000) & -0x2000
    five = (over_b, over_g, over_r, over_g.T, over_b.T)
    return tuple(torch.from_numpy(np.ascontiguousarray(m)).to(device) for m in five)


class _Cells:
    """Moments of some groups of frames, and what the kernels need to know of them."""

    def __init__(
        self, rgb: Tensor, group: Tensor, first: int, groups: int, basis: ColorBasis, psi: Tensor | None
    ) -> None:
        self.rgb, self.group, self.first, self.groups, self.basis = rgb, group, first, groups, basis
        self.space = psi is not None
        self.psi = rgb if psi is None else psi
        self.ranks = 1 if psi is None else len(psi)
        share = rgb.shape[0] * rgb.shape[2] // groups
        self.copies = 1 if self.space else min(max(share // _PIXELS_PER_COPY, 1), _MAX_COPIES)
        self.moments = torch.zeros(self.copies, groups * basis.cells**3 * self.ranks * 8, device=rgb.device)
        self.channels = 2

    def splat(self, values: Tensor, *, ones: bool) -> None:
        """Add the pixels' values (F, 1 or 2, P); with ``ones``, 1 and values - ½."""
        frames, _, pixels = self.rgb.shape
        kernels.splat[-(-pixels // (_THREADS * _SPLAT_RUN)), frames, self.ranks](
            self.rgb, values, self.psi, self.group, self.moments,
            pixels, *self.rgb.stride(), *values.stride(), values.shape[1] > 1,
            self.first, self.groups, self.basis.curvature, *self.basis.scale,
            cells=self.basis.cells, ranks=self.ranks, copies=self.copies, ones=ones, space=self.space,
            block=_THREADS, run=_SPLAT_RUN, num_warps=_THREADS // 32,
        )  # fmt: skip

    def mix(self, totals: Tensor | None) -> None:
        """Apply the kernel between cells, as ``grid.mix`` does.

        Where ``totals`` (groups, 2) are given, v₀ᵀWv₀ and v₁ᵀWv₁ of the two channels are added to them, and the second
        channel alone is kept.
        """
        n, rank, groups = self.basis.cells, self.basis.rank, self.groups
        # The rounding of tf32 (2e-4 of the result) is far below the usual tolerances; three of them make a float32.
        precision = "tf32" if self.basis.tol >= 2e-3 else "tf32x3"
        matrices = _matrices(self.basis, precision, self.rgb.device)
        graphs.hold(*matrices)
        over_b, over_g, over_r, back_g, back_b = matrices
        inner = self.ranks * self.channels
        x = self._cells(self.moments, over_b, inner, precision, from_moments=True)
        x = _planes(over_g, x, groups * n, inner * rank, rank, 3, precision)
        x = _planes(over_r, x, groups, inner * rank * rank, rank, 1, precision, totals)
        self.channels = 2 if totals is None else 1
        inner = self.ranks * self.channels
        x = _planes(back_g, x, groups * n, inner * rank, rank, 1, precision)
        self._cells(x, back_b, inner, precision, from_moments=False)

    def _cells(self, x: Tensor, matrix: Tensor, inner: int, precision: str, *, from_moments: bool) -> Tensor:
        """Moments to sums over b (rows, 3·rank), or back to ``self.moments``; rows are (group, r, g, channel)."""
        n, rank = self.basis.cells, self.basis.rank
        rows = self.groups * n * n * inner
        columns, terms = matrix.shape
        # Distance of (r, g), of channels, of the runs that a row consists of, and the length of a run.
        moments, sums = (4 * n * inner, 4, 4 * inner, 4), (3 * rank * inner, rank, rank * inner, rank)
        source, target = (moments, (3 * rank * inner, 3 * rank, 0, 0)) if from_moments else (sums, moments)
        out = x.new_empty(rows * columns) if from_moments else self.moments
        block_n = min(128, max(16, 1 << (columns - 1).bit_length()))
        kernels.multiply_cells[-(-rows // 64), -(-columns // block_n)](
            x, matrix, out, rows, self.moments.shape[1],
            terms, columns, inner, self.copies if from_moments else 1, precision, *source, *target,
            block_m=64, block_n=block_n, block_k=32, num_warps=8, num_stages=2,
        )  # fmt: skip
        return out

    def slice_(self, out: Tensor) -> None:
        """Write the product to ``out`` (F, 1 or 2, P)."""
        frames, _, pixels = self.rgb.shape
        kernels.slice_[-(-pixels // (_THREADS * _SLICE_RUN)), frames](
            self.rgb, self.psi, self.group, self.moments, out,
            pixels, *self.rgb.stride(), *out.stride()[:2], out.shape[1] > 1,
            self.first, self.groups, self.basis.curvature, *self.basis.scale,
            cells=self.basis.cells, ranks=self.ranks, channels=self.channels, space=self.space,
            block=_THREADS, run=_SLICE_RUN, num_warps=_THREADS // 32,
        )  # fmt: skip


def _planes(
    matrix: Tensor, x: Tensor, batches: int, columns: int, run: int, parts: int, precision: str,
    totals: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Matrix (rows, terms) @ x (batches, terms, columns) -> (batches, rows, columns or, with totals, half of them)."""
    rows, terms = matrix.shape
    out = x.new_empty(batches * rows * (columns if totals is None else columns // 2))
    kernels.multiply[-(-rows // 32), -(-columns // 64), batches](
        matrix, x, out, x if totals is None else totals, rows, terms,
        columns=columns, x_run=run, x_parts=parts, energy=totals is not None, precision=precision,
        block_m=32, block_n=64, block_k=32, num_warps=4,
    )  # fmt: skip
    return out


def _run(
    rgb: Tensor, values: Tensor, out: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None,
    totals: Tensor | None,
) -> None:  # fmt: skip
    ranks = 1 if psi is None else len(psi)
    at_once = max(1, _WORKSPACE // (basis.cells**3 * ranks * 32))
    with torch.cuda.device(rgb.device) if rgb.is_cuda else nullcontext():
        for first in range(0, groups, at_once):
            cells = _Cells(rgb, group, first, min(at_once, groups - first), basis, psi)
            cells.splat(values, ones=totals is not None)
            cells.mix(None if totals is None else totals[first:])
            cells.slice_(out)


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None) -> Tensor:
    """Twin of ``grid.product``, for float32."""
    out = torch.empty(values.shape, device=values.device)
    for c in range(0, values.shape[1], 2):
        _run(rgb, values[:, c : c + 2], out[:, c : c + 2], group, groups, basis, psi, None)
    return out


def energy(
    rgb: Tensor, maps: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Twin of ``grid.energy``, for float32."""
    totals = torch.zeros(groups, 2, dtype=torch.float64, device=maps.device)
    out = torch.empty(maps.shape, device=maps.device)
    _run(rgb, maps[:, None], out[:, None], group, groups, basis, psi, totals)
    return totals, out
