"""Which twin computes a product: Triton kernels on CUDA, Numba on the CPU, plain PyTorch elsewhere."""

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache, lru_cache
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from colocam.affinity import grid
from colocam.affinity.basis import MAX_CELLS, cells_for, color_basis, space_basis
from colocam.affinity.reference import gaussian_sum
from colocam.errors import ColocamError

# Spatial functions handled together: more only cost memory.
_RANKS_AT_ONCE = 16


class Gaussian(NamedTuple):
    """The affinity: exp(-|c - c'|² / 2σ²), and where ``size`` is given, times exp(-|p - p'|² / 2σ_xy²).

    Attributes:
        sigma: width in colour levels.
        tol: relative error to aim at.
        sigma_xy: width in pixels.
        size: (height, width) of a frame, None for colour alone.
    """

    sigma: float
    tol: float
    sigma_xy: float = 0.0
    size: tuple[int, int] | None = None

    def check(self) -> None:
        """Refuse what is no Gaussian."""
        for name, sigma in (("sigma", self.sigma), ("sigma_xy", self.sigma_xy if self.size else 1.0)):
            if not 0 < sigma < float("inf"):
                raise ColocamError(f"affinity: {name} must be positive and finite, got {sigma}")
        if not 0 < self.tol < 1:
            raise ColocamError(f"affinity: tol is a relative error between 0 and 1, got {self.tol}")

    def space(self, like: Tensor) -> Iterator[Tensor | None]:
        """Parts of the spatial basis, (R, P) each, on the device and in the type of ``like``; None for no space."""
        if self.size is None:
            yield None
        else:
            psi = _psi(*self.size, self.sigma_xy, self.tol, like.dtype, like.device)
            yield from torch.split(psi, _RANKS_AT_ONCE)


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """W·v among the frames of each group.

    Args:
        rgb: (F, 3, P) colours in 0–255.
        values: (F, C, P) float32 or float64.
        group: (F,) int64 ids, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity.

    Returns:
        (F, C, P).
    """
    gaussian.check()
    if _too_fine(rgb, gaussian):
        parts = (_dense(rgb, values, group, gaussian.sigma, psi) for psi in gaussian.space(values))
    else:
        twin, basis = _twin(values), color_basis(gaussian.sigma, gaussian.tol)
        parts = (twin.product(rgb, values, group, groups, basis, psi) for psi in gaussian.space(values))
    total: Tensor = sum(parts, start=next(parts))
    return total


def energy(rgb: Tensor, maps: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> tuple[Tensor, Tensor]:
    """The sums 1ᵀW1 and DᵀWD of each group, and WD, where D = S - ½.

    They give R = Σ_r S_rᵀ W (1 - S_r) = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S = -4·WD, without the difference of large numbers that
    W1 - 2·WS is.

    Args:
        rgb: (F, 3, P) colours in 0–255.
        maps: S, (F, P) float32 or float64.
        group: (F,) int64 ids, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity.

    Returns:
        totals (groups, 2) float64, and WD (F, P).
    """
    gaussian.check()
    if _too_fine(rgb, gaussian):
        values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
        out = product(rgb, values, group, groups, gaussian)
        totals = torch.zeros(groups, 2, dtype=torch.float64, device=maps.device)
        return totals.index_add_(0, group, (values * out).sum(2, dtype=torch.float64)), out[:, 1]
    twin, basis = _twin(maps), color_basis(gaussian.sigma, gaussian.tol)
    parts = [twin.energy(rgb, maps, group, groups, basis, psi) for psi in gaussian.space(maps)]
    totals, out = parts[0]
    for other_totals, other in parts[1:]:
        totals, out = totals + other_totals, out + other
    return totals, out


@cache
def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _twin(values: Tensor) -> ModuleType:
    if values.is_cuda and values.dtype == torch.float32 and _has("triton"):
        return importlib.import_module("colocam.affinity.cuda")
    if values.device.type == "cpu" and _has("numba"):
        return importlib.import_module("colocam.affinity.cpu")
    return grid


@lru_cache(maxsize=16)
def _psi(height: int, width: int, sigma: float, tol: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    psi = torch.as_tensor(space_basis(height, width, sigma, tol), dtype=dtype, device=device)
    return psi.flatten(1).contiguous()


def _too_fine(rgb: Tensor, gaussian: Gaussian) -> bool:
    """Whether colours lie between the levels while the Gaussian is too narrow even for cells of one level."""
    needed = cells_for(gaussian.sigma, gaussian.tol)
    return needed > MAX_CELLS and rgb.is_floating_point() and bool((rgb != rgb.round()).any())


def _dense(rgb: Tensor, values: Tensor, group: Tensor, sigma: float, psi: Tensor | None) -> Tensor:
    """The product term by term, for Gaussians narrower than any cell."""
    out = torch.zeros_like(values)
    for number in sorted(set(group.tolist())):
        mine = (group == number).nonzero()[:, 0]
        colors = rgb[mine].transpose(1, 2).flatten(0, 1) / sigma
        for weight in values.new_ones(1, values.shape[2]) if psi is None else psi:
            v = (weight * values[mine]).transpose(1, 2)
            result = gaussian_sum(colors, v.flatten(0, 1)).view_as(v).transpose(1, 2)
            out[mine] += (weight * result).to(out.dtype)
    return out
