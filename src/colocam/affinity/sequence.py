"""The product for the pixels of one sequence on the CPU, with Numba: arrays in, arrays out, no torch."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numpy as np

from colocam.affinity import cpu_kernels as compiled
from colocam.affinity.basis import ColorBasis
from colocam.affinity.cpu_kernels import Array
from colocam.utils.device import cores

T = TypeVar("T")


@cache
def _pool() -> ThreadPoolExecutor:
    # Threads of our own: OpenMP's belong to torch, whose settings stay as they are, and Numba's may not be shared.
    return ThreadPoolExecutor(cores(), "affinity")


def each(function: Callable[[int], T], count: int) -> list[T]:
    """function(0), function(1), … on the threads."""
    return [function(0)] if count == 1 else list(_pool().map(function, range(count)))


def _sum(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


class ColorSequence:
    """The pixels of one sequence, rgb (F, 3, P), their cells, and the threads that share them."""

    def __init__(self, rgb: Array, psi: Array, basis: ColorBasis, threads: int) -> None:
        self.rgb, self.psi, self.threads = rgb, psi, threads
        cells = basis.cells
        self.factor = basis.factor.astype(psi.dtype)
        self.constants = np.array([cells / 256, basis.curvature, *basis.scale, 1, 0.5, cells - 1], psi.dtype)
        self.cuts = np.linspace(0, rgb.shape[2], threads + 1).astype(int)
        self.planes = np.linspace(0, cells, threads + 1).astype(int)
        self.index = np.empty((len(rgb), rgb.shape[2]), np.int32)
        used = np.zeros(cells**3, np.bool_)
        each(lambda t: compiled.locate(rgb, self.constants, self.cuts[t], self.cuts[t + 1], self.index, used), threads)
        self.rows, self.slot = np.empty(cells**2 + 1, np.int32), np.empty(cells**3, np.int32)
        self.blue = np.empty(min(self.index.size, cells**3), np.int32)
        self.count = compiled.number(used, self.rows, self.slot, self.blue)

    def spectrum(self, values: Array) -> Array:
        """Values (F, C, P) -> (rank, rank, R, C, rank), the coordinates of ψ ⊗ v in which W is the identity."""
        rank, channels = self.factor.shape[2], values.shape[1]
        width = len(self.psi) * channels

        def splat(t: int) -> Array:
            moments = np.zeros((self.count, width, 4), values.dtype)
            compiled.splat(
                self.rgb,
                values,
                self.psi,
                self.constants,
                self.cuts[t],
                self.cuts[t + 1],
                self.index,
                self.slot,
                moments,
            )
            return moments

        def analyse(t: int) -> Array:
            spectrum = np.zeros((rank, rank * width * rank), values.dtype)
            planes = self.planes[t], self.planes[t + 1]
            compiled.analyse(moments, self.rows, self.blue, self.factor, *planes, spectrum)
            return spectrum

        moments = _sum(each(splat, self.threads))
        return _sum(each(analyse, self.threads)).reshape(rank, rank, len(self.psi), channels, rank)

    def product(self, spectrum: Array, out: Array) -> None:
        """Write the product whose spectrum is given to ``out`` (F, C, P)."""
        rank, width = self.factor.shape[2], spectrum.shape[2] * spectrum.shape[3]
        moments = np.empty((self.count, width, 4), out.dtype)
        flat = spectrum.reshape(rank, rank * width * rank)

        def synthesise(t: int) -> None:
            planes = self.planes[t], self.planes[t + 1]
            compiled.synthesise(flat, self.rows, self.blue, self.factor, *planes, moments)

        def slice_(t: int) -> None:
            pixels = self.cuts[t], self.cuts[t + 1]
            compiled.slice_(self.rgb, out, self.psi, self.constants, *pixels, self.index, moments)

        each(synthesise, self.threads)
        each(slice_, self.threads)
