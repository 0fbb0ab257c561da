"""The product on the CPU, in C: the sequences, or the parts of one sequence, are shared among all cores.

Only color cells with a pixel are stored. Layouts: moments (cells in use, R·C, 4), spectra (rank, rank, R, C, rank) for
the axes r, g, b. A function in C computes a part of the pixels, or of the planes of cells with one r.

A sequence has as many parts as its size asks for, not as there are cores: sums of other parts round differently, and
the same frames must give the same boxes on every machine. :class:`ColorSequence` works on arrays without torch;
``product`` is what ``engine`` calls.

Tests: tests/losses/affinity/test_products.py, tests/losses/affinity/test_accuracy.py.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, reduce
from operator import iadd
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.losses.affinity.basis import ColorBasis
from colocam.native import kernels
from colocam.utils.device import cores

if TYPE_CHECKING:
    from torch import Tensor

Array = npt.NDArray[Any]
T = TypeVar("T")

PIXELS_OF_A_PART, MOST_PARTS = 2**16, 8
"""With fewer pixels, to zero and to add up the moments of each part would take longer than to fill them."""


@cache
def _pool() -> ThreadPoolExecutor:
    # Not OpenMP's threads, whose settings belong to torch.
    return ThreadPoolExecutor(cores(), "affinity")


def _each(function: Callable[[int], T], count: int, *, shared: bool = True) -> list[T]:
    """[function(0), …, function(count - 1)], computed by the threads of the pool, or by this one."""
    return list((_pool().map if shared and count > 1 else map)(function, range(count)))


class ColorSequence:
    """The pixels of one sequence and their color cells; without C, NumPy computes the same in several times the time.

    Args:
        rgb: (F, 3, P) colors in 0–255.
        psi: (R, P) basis of the spatial kernel; ones (1, P) for color alone.
        basis: of the color kernel.
        shared: whether all cores share the parts of the sequence; not in a thread of the pool.
    """

    def __init__(self, rgb: Array, psi: Array, basis: ColorBasis, *, shared: bool = True) -> None:
        if rgb.ndim != 3 or psi.ndim != 2 or rgb.shape[1:] != (3, psi.shape[1]):
            raise ColocamError(f"rgb must be (F, 3, P) and psi (R, P), got {rgb.shape} and {psi.shape}")
        self.rgb, self.psi, self.basis, self.shared = rgb, psi, basis, shared
        self.factor = basis.factor.astype(psi.dtype)
        if kernels is None:
            return
        cells = basis.cells
        self.parts = min(max(len(rgb) * rgb.shape[2] // PIXELS_OF_A_PART, 1), MOST_PARTS)
        numbers = basis.per_level, basis.curvature, *basis.scale, 1, 0.5, cells - 1, *basis.shifts
        self.constants = np.array(numbers, psi.dtype)
        self.cuts = np.linspace(0, rgb.shape[2], self.parts + 1).astype(int)
        self.planes = np.linspace(0, cells, self.parts + 1).astype(int)
        self.index = np.empty((len(rgb), rgb.shape[2]), np.int32)
        used = np.zeros(cells**3, np.bool_)
        self._each(lambda t: kernels.locate(rgb, self.constants, self.cuts[t], self.cuts[t + 1], self.index, used))
        in_use = np.flatnonzero(used)
        self.slot = np.zeros(cells**3, np.int32)  # number of each cell in use
        self.slot[in_use] = np.arange(len(in_use))
        self.blue = (in_use % cells).astype(np.int32)  # b of each number
        self.rows = np.searchsorted(in_use, cells * np.arange(cells**2 + 1)).astype(np.int32)  # first of each (r, g)

    def spectrum(self, values: Array) -> Array:
        """Values (F, C, P) → (rank, rank, R, C, rank), the coordinates of ψ ⊗ v in which W is the identity."""
        frames, _, pixels = self.rgb.shape
        if values.ndim != 3 or (len(values), values.shape[2]) != (frames, pixels):  # compiled code checks no bounds
            raise ColocamError(f"values must be ({frames}, C, {pixels}), as rgb is, got {values.shape}")
        rank, channels = self.factor.shape[2], values.shape[1]
        width = len(self.psi) * channels
        shape = (rank, rank, len(self.psi), channels, rank)
        if kernels is None:
            return self._plain_spectrum(values).reshape(shape).astype(values.dtype)

        def splat(t: int) -> Array:
            moments = np.zeros((len(self.blue), width, 4), values.dtype)
            pixels = self.cuts[t], self.cuts[t + 1]
            kernels.splat(self.rgb, values, self.psi, self.constants, *pixels, self.index, self.slot, moments)
            return moments

        def analyze(t: int) -> Array:
            spectrum = np.zeros((rank, rank * width * rank), values.dtype)
            planes = self.planes[t], self.planes[t + 1]
            kernels.analyze(moments, self.rows, self.blue, self.factor, *planes, spectrum)
            return spectrum

        moments = reduce(iadd, self._each(splat))
        return reduce(iadd, self._each(analyze)).reshape(shape)

    def product(self, spectrum: Array) -> Array:
        """The product W·v (F, C, P), from the spectrum of v (rank, rank, R, C, rank)."""
        rank, (frames, _, pixels) = self.factor.shape[2], self.rgb.shape
        functions, channels = spectrum.shape[2:4]
        if spectrum.shape != (rank, rank, len(self.psi), channels, rank):
            raise ColocamError(f"spectrum must have rank {rank} and {len(self.psi)} functions, got {spectrum.shape}")
        if kernels is None:
            return self._plain_product(spectrum).astype(spectrum.dtype)
        out = np.empty((frames, channels, pixels), spectrum.dtype)
        moments = np.empty((len(self.blue), functions * channels, 4), spectrum.dtype)
        flat = np.ascontiguousarray(spectrum).reshape(rank, rank * functions * channels * rank)

        def synthesize(t: int) -> None:
            planes = self.planes[t], self.planes[t + 1]
            kernels.synthesize(flat, self.rows, self.blue, self.factor, *planes, moments)

        def slice_(t: int) -> None:
            pixels = self.cuts[t], self.cuts[t + 1]
            kernels.slice(self.rgb, out, self.psi, self.constants, *pixels, self.index, self.slot, moments)

        self._each(synthesize)
        self._each(slice_)
        return out

    @cached_property
    def _local(self) -> tuple[Array, Array]:
        """Cell (F·P,) and φ (4, F·P) of each pixel."""
        basis = self.basis
        position = (self.rgb.transpose(1, 0, 2).reshape(3, -1) + 0.5) * basis.per_level + np.array(basis.shifts)[
            :, None
        ]
        cell = np.nan_to_num(np.floor(position)).clip(0, basis.cells - 1)
        offset = position - cell - 0.5
        bump = (1 - basis.curvature * offset**2).prod(0)
        phi = np.stack([basis.scale[0] * bump, *(basis.scale[1] * bump * offset)])
        return cell.astype(np.int64).T @ [basis.cells**2, basis.cells, 1], phi

    def _moments(self) -> Iterator[tuple[Array, list[Array]]]:
        """φ (F·P,) of the four moments, constant and linear along r, g and b, each with its U along r, g and b."""
        flat, slope = self.basis.factor
        for linear, phi in enumerate(self._local[1], -1):
            yield phi, [slope if axis == linear else flat for axis in range(3)]

    def _plain_spectrum(self, values: Array) -> Array:
        cell, _ = self._local
        weighted = np.einsum("kp,fcp->kcfp", self.psi, values).reshape(-1, len(cell))
        total, shape = np.zeros(()), (self.basis.cells,) * 3
        for phi, factors in self._moments():
            each = [np.bincount(cell, phi * v, self.basis.cells**3).reshape(shape) for v in weighted]
            total = total + np.einsum("xrgb,ri,gj,bk->ijxk", np.stack(each), *factors, optimize=True)
        return total

    def _plain_product(self, spectrum: Array) -> Array:
        cell, _ = self._local
        (frames, _, pixels), (rank, _, ranks, channels, _) = self.rgb.shape, spectrum.shape
        flat = spectrum.reshape(rank, rank, ranks * channels, rank)
        total = np.zeros(())
        for phi, factors in self._moments():
            moments = np.einsum("ijxk,ri,gj,bk->xrgb", flat, *factors, optimize=True)
            total = total + phi * moments.reshape(ranks * channels, -1)[:, cell]
        product: Array = np.einsum("kcfp,kp->fcp", total.reshape(ranks, channels, frames, pixels), self.psi)
        return product

    def _each(self, function: Callable[[int], T]) -> list[T]:
        return _each(function, self.parts, shared=self.shared)


def product(
    rgb: "Tensor", values: "Tensor", group: "Tensor", groups: int, basis: ColorBasis, psi: "Tensor | None",
    totals: "Tensor | None" = None,
) -> "Tensor":  # fmt: skip
    """Σ_k ψ_k · C(ψ_k · v), C the color product within each group of frames.

    Args:
        rgb: (F, 3, P).
        values: (F, C, P) float32 or float64; of another device, they are computed on the CPU.
        group: (F,) int64 index of each frame's group, 0 … groups-1.
        groups: number of groups.
        basis: of the color kernel.
        psi: (R, P) basis of the spatial kernel; the constant 1 where None.
        totals: (groups, 2) float64. Where they are given, the values are maps S (F, 1, P), the product is that of
            D = S - ½, and the sums 1ᵀW1 and DᵀWD of each group are added to them.

    Returns:
        (F, C, P).
    """
    import torch  # noqa: PLC0415 - tensors bring torch; ColorSequence does not need it

    given = values if totals is None else torch.cat([torch.ones_like(values), values - 0.5], dim=1)
    # Detached: the caller's no_grad does not hold in other threads.
    colors, v = (x.detach().to("cpu", values.dtype).contiguous().numpy() for x in (rgb, given))
    space = np.ones((1, v.shape[2]), v.dtype) if psi is None else psi.cpu().numpy()
    members = group.cpu().numpy()
    indices = np.unique(members).tolist()
    in_turn, sums = len(indices) < cores(), np.zeros((groups, 2))

    def work(i: int) -> Array:
        mine = members == indices[i]
        sequence = ColorSequence(colors[mine], space, basis, shared=in_turn)
        spectrum = sequence.spectrum(v[mine])
        if totals is not None:
            sums[indices[i]] = np.einsum("abkcd,abkcd->c", spectrum, spectrum, dtype=np.float64)
            spectrum = spectrum[:, :, :, 1:]
        return sequence.product(spectrum)

    results = _each(work, len(indices), shared=not in_turn)
    if totals is not None:
        totals += torch.from_numpy(sums).to(totals.device)
    order = np.argsort(np.argsort(members, kind="stable"))  # from groups in turn back to the order of frames
    return torch.from_numpy(np.concatenate(results)[order]).to(values.device)
