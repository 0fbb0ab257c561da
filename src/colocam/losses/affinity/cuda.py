"""The product on a CUDA device: launches of the Triton kernels and their block sizes.

Tests: tests/gpu/test_gpu.py, tests/test_triton_interpreter.py.
"""

import math
from contextlib import nullcontext
from functools import cache, lru_cache

import numpy as np
import torch
from torch import Tensor

from colocam.errors import ColocamError
from colocam.losses.affinity import cuda_color_kernels as kernels
from colocam.losses.affinity import cuda_space_kernels
from colocam.losses.affinity.basis import ColorBasis

# Bytes of moments, and of sums over color and space, in memory at once; more groups are computed in turn.
_WORKSPACE = 96 << 20
_SPACE_WORKSPACE = 400 << 20
# Pixels of one group that share a copy of its cells: atomic additions to one address are serialized.
_PIXELS_PER_COPY = 1_600_000
_MAX_COPIES = 4
_THREADS = 128
# Pixels that a thread takes in a row.
_RUN = 4
_SORT_BLOCK = 256
# Pixels of a row and eigenvectors along b per block, in ``analyze`` and ``synthesize``, for rows with at most so many
# pixels: half of the pixels of real frames lie in a twentieth of their rows, those with more than 256.
_ROW_BLOCKS = {
    256: {"block_p": 32, "block_j": 32, "num_warps": 1, "num_stages": 1},
    (1 << 31) - 1: {"block_p": 128, "block_j": 32, "num_warps": 4, "num_stages": 1},
}
# Largest sum over the pixels of a group that is stored in half precision; the product with the kernel adds a digit.
_HALF_RANGE = 1024.0
# Programs on each multiprocessor that share the rows of cells with a pixel; one for every row would mostly find none.
_PROGRAMS = 32


def _tile(rows: int, columns: int, terms: int, stages: int) -> dict[str, int]:
    """Rows, columns and terms of a matrix product per block, and pipeline stages."""
    return {"block_m": rows, "block_n": columns, "block_k": terms, "num_warps": 4, "num_stages": stages}


_TILE = _tile(32, 64, 32, 3)
_CELLS_TILE = _tile(64, 128, 32, 3)
_OVER_G_TILE = _tile(64, 128, 64, 3)
_OVER_R_TILE = _tile(128, 64, 64, 2)
_BACK_G_TILE = _tile(64, 64, 64, 2)


@lru_cache(maxsize=32)
def _matrices(basis: ColorBasis, precision: str, device: torch.device) -> tuple[Tensor, ...]:
    """The five matrices of ``_Cells.mix`` on the device, rounded to the precision of the tensor cores, and U itself."""
    kind = np.float16 if precision == "half" else np.float32
    over_b, over_g, over_r, factor = (m.astype(kind) for m in (*basis.matrices, basis.factor))
    if precision == "tf32":
        for m in (over_b, over_g, over_r, factor):
            m.view(np.int32)[:] = (m.view(np.int32) + 0x1000) & -0x2000
    all_of_them = (over_b, over_g, over_r, over_g.T, over_b.T, factor)
    return tuple(torch.from_numpy(np.ascontiguousarray(m)).to(device) for m in all_of_them)


class _Cells:
    """Moments of the color cells of some groups of frames."""

    def __init__(self, rgb: Tensor, group: Tensor, first: int, groups: int, basis: ColorBasis) -> None:
        self.rgb, self.group, self.first, self.groups, self.basis = rgb, group, first, groups, basis
        share = rgb.shape[0] * rgb.shape[2] // groups
        self.copies = min(max(share // _PIXELS_PER_COPY, 1), _MAX_COPIES)
        self.channels = 2
        self.numbers = basis.per_level, *basis.shifts[1:], basis.curvature, *basis.scale

    def splat(self, values: Tensor, *, ones: bool, fixed: bool) -> None:
        """Sum the moments of the pixels' values (F, 1 or 2, P); with ``ones``, of 1 and values - ½.

        With ``fixed`` the sum is the same in every run: it is computed in 64-bit fixed point.
        """
        frames, _, pixels = self.rgb.shape
        units = _units(values, self.rgb) if fixed else values
        self.moments = torch.zeros(
            self.copies, self.groups * self.basis.cells**3 * 8,
            dtype=torch.int64 if fixed else torch.float32, device=values.device,
        )  # fmt: skip
        kernels.splat[-(-pixels // (_THREADS * _RUN)), frames](
            self.rgb, values, self.group, self.moments, units,
            pixels, *self.rgb.stride(), *values.stride(), values.shape[1] > 1,
            self.first, self.groups, *self.numbers,
            cells=self.basis.cells, copies=self.copies, ones=ones, fixed=fixed,
            block=_THREADS, run=_RUN, num_warps=_THREADS // 32,
        )  # fmt: skip
        if fixed:
            self.moments = (self.moments.sum(0, keepdim=True).double() / units.double()).float()
            self.copies = 1

    def mix(self, totals: Tensor | None) -> None:
        """Apply the kernel between cells, one axis after the other.

        Where ``totals`` (groups, 2) are given, v₀ᵀWv₀ and v₁ᵀWv₁ of the two channels are added to them, and the second
        channel alone is kept.
        """
        n, rank, groups = self.basis.cells, self.basis.rank, self.groups
        precision = _precision(self.basis)
        over_b, over_g, over_r, back_g, back_b, _ = _matrices(self.basis, precision, self.rgb.device)
        x = self._cells(self.moments, over_b, precision, from_moments=True)
        x = _planes(over_g, x, groups * n, self.channels * rank, precision, run=rank, parts=3)
        x = _planes(over_r, x, groups, self.channels * rank * rank, precision, run=rank, totals=totals)
        self.channels = 2 if totals is None else 1
        x = _planes(back_g, x, groups * n, self.channels * rank, precision, run=rank)
        self._cells(x, back_b, precision, from_moments=False)

    def _cells(self, x: Tensor, matrix: Tensor, precision: str, *, from_moments: bool) -> Tensor:
        """Moments to sums over b (rows, 3·rank), or back to ``self.moments``; rows are (group, r, g, channel)."""
        n, rank, inner = self.basis.cells, self.basis.rank, self.channels
        rows = self.groups * n * n * inner
        columns, terms = matrix.shape
        # Strides of (r, g), of channels, of the runs of a row, and the length of a run.
        moments, sums = (4 * n * inner, 4, 4 * inner, 4), (3 * rank * inner, rank, rank * inner, rank)
        source, target = (moments, (3 * rank * inner, 3 * rank, 0, 0)) if from_moments else (sums, moments)
        out = x.new_empty(rows * columns) if from_moments else self.moments
        tile = _CELLS_TILE | {"block_n": min(_CELLS_TILE["block_n"], _block(columns))}
        kernels.multiply_cells[-(-rows // tile["block_m"]), -(-columns // tile["block_n"])](
            x, matrix, out, rows, self.moments.shape[1],
            terms, columns, inner, self.copies if from_moments else 1, precision, *source, *target, **tile,
        )  # fmt: skip
        return out

    def slice_(self, out: Tensor) -> None:
        """Write the product to ``out`` (F, 1 or 2, P)."""
        frames, _, pixels = self.rgb.shape
        kernels.slice_[-(-pixels // (_THREADS * _RUN)), frames](
            self.rgb, self.group, self.moments, out,
            pixels, *self.rgb.stride(), *out.stride()[:2], out.shape[1] > 1,
            self.first, self.groups, *self.numbers,
            cells=self.basis.cells, channels=self.channels,
            block=_THREADS, run=_RUN, num_warps=_THREADS // 32,
        )  # fmt: skip


# Rows (rows,), of which the first total (1,) are set, and the blocks they are computed in.
_Listed = tuple[Tensor, Tensor, dict[str, int]]


class _Rows:
    """Pixels sorted by their row of cells (r, g), for the product of color and space with values (F, 1 or 2, P).

    With ``ones``, the product is that of 1 and values - ½, whose size is known: it is computed in half precision, which
    has as many bits as tf32, if the tolerance permits.
    """

    def __init__(
        self, rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor, *, ones: bool
    ) -> None:
        self.values, self.groups, self.basis, self.ones = values, groups, basis, ones
        self.precision = "half" if ones and _precision(basis) == "tf32" else _precision(basis)
        kind = torch.float16 if self.precision == "half" else torch.float32
        self.psi = torch.empty(psi.shape[::-1], dtype=kind, device=psi.device).copy_(psi.T)
        frames, _, pixels = rgb.shape
        if frames * pixels >= 1 << 31:
            raise ColocamError(f"affinity: {frames} frames of {pixels} pixels are too many for one call; split them")
        most = pixels * max(1, frames - groups + 1)  # pixels of one group
        self.unit = min(1.0, 2.0 ** math.floor(math.log2(_HALF_RANGE / most))) if self.precision == "half" else 1.0
        self.counts = torch.zeros(groups * basis.cells**2, dtype=torch.int32, device=rgb.device)
        place = torch.empty(frames * pixels, dtype=torch.int32, device=rgb.device)
        self.order = torch.empty_like(place)
        self.records = torch.empty(frames * pixels, 4, device=rgb.device)
        programs = -(-pixels // _SORT_BLOCK), frames
        sizes = pixels, *rgb.stride(), basis.per_level, *basis.shifts[1:]
        options = {"cells": basis.cells, "block": _SORT_BLOCK, "num_warps": _SORT_BLOCK // 32}
        cuda_space_kernels.count[programs](rgb, group, self.counts, place, *sizes, **options)
        self.ends = self.counts.cumsum(0, dtype=torch.int32)
        cuda_space_kernels.arrange[programs](
            rgb, group, values, self.ends, place, self.order, self.records,
            *sizes, values.stride(0), values.stride(2), **options,
        )  # fmt: skip

    def multiply(self, out: Tensor, totals: Tensor | None) -> None:
        """Product into ``out``; with ``totals``, as in ``_Cells.mix``, of the second channel alone."""
        n, rank, ranks = self.basis.cells, self.basis.rank, self.psi.shape[1]
        at_once = _at_once(_SPACE_WORKSPACE, n * n * 3 * rank * ranks * 2 * self.psi.element_size(), n)
        _, over_g, over_r, back_g, _, factor = _matrices(self.basis, self.precision, out.device)
        channels = 2 if totals is None else 1
        for first in range(0, self.groups, at_once):
            groups = min(at_once, self.groups - first)
            counts = self.counts[first * n * n : (first + groups) * n * n]
            precision = self.precision
            listed = _listed(counts)
            x = self._analyze(factor, first, groups, listed)
            inner = rank * ranks * 2
            x = _planes(over_g, x, groups * n, inner, precision, counts=counts, sparse="terms", tile=_OVER_G_TILE)
            own, square = None if totals is None else totals[first:], self.unit**-2
            x = _planes(
                over_r, x, groups, rank * inner, precision, run=ranks, totals=own, square=square, tile=_OVER_R_TILE
            )
            inner = rank * ranks * channels
            x = _planes(back_g, x, groups * n, inner, precision, counts=counts, sparse="rows", tile=_BACK_G_TILE)
            self._synthesize(x, out, factor, first, listed, channels)

    def _analyze(self, factor: Tensor, first: int, groups: int, listed: list[_Listed]) -> Tensor:
        """Sums over b (groups, cells, cells, 3, rank, 2, R) of rows with a pixel; other rows are undefined."""
        n, rank, ranks = self.basis.cells, self.basis.rank, self.psi.shape[1]
        sums = torch.empty(groups * n * n * 3 * rank * ranks * 2, dtype=self.psi.dtype, device=self.psi.device)
        for rows, total, blocks in listed:
            cuda_space_kernels.analyze[_programs(rows), -(-rank // blocks["block_j"])](
                self.records, self.values, self.psi, self.order, self.ends, rows, total, factor, sums,
                first * n * n, self.values.shape[2], *self.values.stride(), self.values.shape[1] > 1,
                self.basis.curvature, *self.basis.scale, self.unit,
                cells=n, rank=rank, ranks=ranks, ones=self.ones, precision=self.precision,
                block_i=_block(2 * ranks), **blocks,
            )  # fmt: skip
        return sums

    def _synthesize(
        self, sums: Tensor, out: Tensor, factor: Tensor, first: int, listed: list[_Listed], channels: int
    ) -> None:
        """Read the product back from sums over b (groups, cells, cells, 3, rank, channels, R)."""
        n, rank, ranks = self.basis.cells, self.basis.rank, self.psi.shape[1]
        for rows, total, blocks in listed:
            cuda_space_kernels.synthesize[(_programs(rows),)](
                self.records, self.psi, self.order, self.ends, rows, total, factor, sums, out,
                first * n * n, out.shape[2], *out.stride()[:2], out.shape[1] > 1,
                self.basis.curvature, *self.basis.scale, self.unit,
                cells=n, rank=rank, ranks=ranks, channels=channels, precision=self.precision,
                block_i=_block(ranks), **blocks,
            )  # fmt: skip


def _listed(counts: Tensor) -> list[_Listed]:
    """The rows with a pixel, in parts with a block size each."""
    block = 1024
    least = 1
    parts = []
    for most, blocks in _ROW_BLOCKS.items():
        rows = torch.empty_like(counts)
        total = torch.zeros(1, dtype=torch.int32, device=counts.device)
        cuda_space_kernels.list_rows[(-(-len(counts) // block),)](
            counts, rows, total, len(counts), least, most, block=block
        )
        parts.append((rows, total, blocks))
        least = most + 1
    return parts


def _programs(rows: Tensor) -> int:
    return min(len(rows), _PROGRAMS * _multiprocessors(rows.device))


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def _units(values: Tensor, rgb: Tensor) -> Tensor:
    """(1,) power of two that maps the values to at most 2³⁰: 2³² of them fit into 64 bits. NaN for NaN or infinity."""
    largest = values.abs().amax().float()
    if rgb.is_floating_point():
        largest = largest + 0 * rgb.amax()
    return torch.exp2(30 - (largest + 0 * largest).clamp(min=2.0**-60).log2().ceil())[None]


def _at_once(workspace: int, group_bytes: int, cells: int) -> int:
    """Groups per launch: limited by the workspace, and by the third axis of the launch grid, groups · cells."""
    return max(1, min(workspace // group_bytes, 65535 // cells))


def _block(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def _precision(basis: ColorBasis) -> str:
    """tf32 rounds to 2e-4 of the result, far below the usual tolerances; tf32x3 is as exact as float32."""
    return "tf32" if basis.tol >= 2e-3 else "tf32x3"


def _planes(
    matrix: Tensor, x: Tensor, batches: int, columns: int, precision: str, *, run: int = 1, parts: int = 1,
    totals: Tensor | None = None, square: float = 1.0, counts: Tensor | None = None, sparse: str = "",
    tile: dict[str, int] = _TILE,
) -> Tensor:  # fmt: skip
    """Matrix (rows, terms) @ x (batches, terms, columns) -> (batches, rows, columns or, with totals, half of them)."""
    rows, terms = matrix.shape
    out = x.new_empty(batches * rows * (columns if totals is None else columns // 2))
    kernels.multiply[-(-rows // tile["block_m"]), -(-columns // tile["block_n"]), batches](
        matrix, x, out, x if totals is None else totals, x if counts is None else counts, rows, terms, square,
        columns=columns, x_run=run, x_parts=parts, energy=totals is not None, sparse=sparse, precision=precision,
        **tile,
    )  # fmt: skip
    return out


def product(
    rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None,
    totals: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """As ``cpu.product``, for float32, two channels at a time."""
    out = torch.empty(values.shape, device=values.device)
    pairs = list(zip(torch.split(values, 2, 1), torch.split(out, 2, 1), strict=True))
    with torch.cuda.device(rgb.device) if rgb.is_cuda else nullcontext():
        if psi is not None:
            for v, target in pairs:
                _Rows(rgb, v, group, groups, basis, psi, ones=totals is not None).multiply(target, totals)
            return out
        at_once = _at_once(_WORKSPACE, basis.cells**3 * 32, basis.cells)
        for first in range(0, groups, at_once):
            for v, target in pairs:
                cells = _Cells(rgb, group, first, min(at_once, groups - first), basis)
                # The gradients of training may round differently from run to run, the maps of a video must not.
                cells.splat(v, ones=totals is not None, fixed=totals is None)
                cells.mix(None if totals is None else totals[first:])
                cells.slice_(target)
    return out
