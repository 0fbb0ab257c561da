"""The product on the CPU: sequences, or shares of one sequence, side by side on all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from colocam.affinity import compiled
from colocam.affinity.basis import ColorBasis
from colocam.affinity.compiled import Array

T = TypeVar("T")


@cache
def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    # Threads of our own: OpenMP's belong to torch, whose settings stay as they are, and Numba's may not be shared.
    return ThreadPoolExecutor(_cores(), "affinity")


def _each(function: Callable[[int], T], count: int) -> list[T]:
    return [function(0)] if count == 1 else list(_pool().map(function, range(count)))


def _sum(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


class _Sequence:
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
        _each(lambda t: compiled.locate(rgb, self.constants, self.cuts[t], self.cuts[t + 1], self.index, used), threads)
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

        moments = _sum(_each(splat, self.threads))
        return _sum(_each(analyse, self.threads)).reshape(rank, rank, len(self.psi), channels, rank)

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

        _each(synthesise, self.threads)
        _each(slice_, self.threads)


def _for_each_group(
    rgb: Tensor, values: Tensor, out: Tensor, group: Tensor, psi: Tensor | None, basis: ColorBasis,
    function: Callable[[_Sequence, int, Array, Array], None],
) -> None:  # fmt: skip
    """Call function(sequence, id, its values (f, …), its part of out) for every group of frames."""
    members: dict[int, list[int]] = {}
    for frame, number in enumerate(group.tolist()):
        members.setdefault(number, []).append(frame)
    groups = list(members.items())
    # Detached: the threads below do not know that the caller records no gradients.
    rgb, values = rgb.detach().to(values.dtype), values.detach()
    alone = len(groups) < _cores()
    space = (values.new_ones(1, rgb.shape[2]) if psi is None else psi).numpy()

    def work(i: int) -> None:
        number, frames = groups[i]
        # Neighbouring frames are a view and cost no copy.
        joined = frames == list(range(frames[0], frames[-1] + 1))
        mine = slice(frames[0], frames[-1] + 1) if joined else torch.as_tensor(frames)
        target = out[mine].numpy()
        sequence = _Sequence(rgb[mine].contiguous().numpy(), space, basis, _cores() if alone else 1)
        function(sequence, number, values[mine].contiguous().numpy(), target)
        if not joined:
            # Not through torch: the threads do not know of the caller's inference mode either.
            out.numpy()[frames] = target

    if alone:
        for i in range(len(groups)):
            work(i)
    else:
        _each(work, len(groups))


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None) -> Tensor:  # noqa: ARG001
    """Twin of ``grid.product``, for float32 and float64."""
    out = torch.empty_like(values, memory_format=torch.contiguous_format)

    def function(sequence: _Sequence, _: int, v: Array, target: Array) -> None:
        sequence.product(sequence.spectrum(v), target)

    _for_each_group(rgb, values, out, group, psi, basis, function)
    return out


def energy(
    rgb: Tensor, maps: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Twin of ``grid.energy``, for float32 and float64."""
    out = torch.empty_like(maps, memory_format=torch.contiguous_format)[:, None]
    totals = np.zeros((groups, 2))

    def function(sequence: _Sequence, number: int, v: Array, target: Array) -> None:
        spectrum = sequence.spectrum(v)
        totals[number] = np.einsum("abkcd,abkcd->c", spectrum, spectrum, dtype=np.float64)
        sequence.product(np.ascontiguousarray(spectrum[:, :, :, 1:]), target)

    values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
    _for_each_group(rgb, values, out, group, psi, basis, function)
    return torch.from_numpy(totals), out[:, 0]
