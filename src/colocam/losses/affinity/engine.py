"""Products W·v with colour and bilateral affinities: any shape, differentiable in v.

``product`` and ``energy`` choose how: Triton kernels on CUDA; otherwise the CPU, in C.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from colocam.errors import ColocamError
from colocam.losses.affinity import cpu
from colocam.losses.affinity.basis import MAX_CELLS, cells_for, color_basis, space_basis, space_rank
from colocam.losses.affinity.reference import gaussian_sum, reach, window_product
from colocam.utils.tensors import require_finite

# Spatial functions that are handled together; more need more memory and save no time.
_RANKS_AT_ONCE = 16
# Largest number of values in moments or spectra, 512 MB of float32: narrow Gaussians have many cells and eigenvectors.
_WORKSPACE = 1 << 27
# Cost of one spatial function per pixel and per cell, relative to that of one pair of neighbouring pixels.
_COST_PER_PIXEL, _COST_PER_CELL = 2, 3
# Widest range of colours that can be an overshoot of resizing; a wider one is another scale than 0–255.
_WIDEST = 512.0
# Relative error of a product with values of random signs, over that with positive ones; measured with uniform colours.
_SIGNED_ERROR = 0.12 / 0.07
# Shares of the tolerance; their squares add up to 1. One more spatial function costs less than more cells.
_COLOR_SHARE, _SPACE_SHARE = 0.93, 0.35


class Gaussian(NamedTuple):
    """The affinity: exp(-|c - c'|² / 2σ²), and where ``size`` is given, times exp(-|p - p'|² / 2σ_xy²).

    Attributes:
        sigma: width in colour levels.
        tol: relative error to aim at.
        sigma_xy: width in pixels.
        size: (height, width) of a frame, None for colour alone.
        tol_xy: relative error of the spatial part; None: ``tol``.
    """

    sigma: float
    tol: float
    sigma_xy: float = 0.0
    size: tuple[int, int] | None = None
    tol_xy: float | None = None

    def for_signed(self) -> "Gaussian":
        """The same with ``tol`` for values of any sign: there, errors of W do not cancel, but its entries do.

        With random signs, the relative error of W·v is that of W itself in the Frobenius norm. Those of the colour
        and of the spatial part are independent.
        """
        color, space = (1.0, None) if self.size is None else (_COLOR_SHARE, _SPACE_SHARE * self.tol)
        return self._replace(tol=color * self.tol / _SIGNED_ERROR, tol_xy=space)

    def check(self) -> None:
        """Raise a ColocamError unless widths and tolerance are valid."""
        for name, sigma in (("sigma", self.sigma), ("sigma_xy", self.sigma_xy if self.size else 1.0)):
            if not 0 < sigma < float("inf"):
                raise ColocamError(f"affinity: {name} must be positive and finite, got {sigma}")
        if not 0 < self.tol < 1:
            raise ColocamError(f"affinity: tol must be a relative error between 0 and 1, got {self.tol}")

    @property
    def space_tol(self) -> float:
        """Relative error of the spatial part."""
        return self.tol if self.tol_xy is None else self.tol_xy

    def window(self) -> tuple[int, int] | None:
        """Rows and columns of neighbours to sum over; None if the spatial basis is cheaper."""
        if self.size is None:
            return None
        rows, columns = reach(self.size, self.sigma_xy, self.space_tol)
        pixels, cells = self.size[0] * self.size[1], min(cells_for(self.sigma, self.tol), MAX_CELLS) ** 3
        neighbours = ((2 * rows + 1) * (2 * columns + 1) - 1) // 2
        functions = space_rank(*self.size, self.sigma_xy, self.space_tol)
        cheaper = neighbours * pixels <= functions * (_COST_PER_PIXEL * pixels + _COST_PER_CELL * cells)
        return (rows, columns) if cheaper else None

    def space(self, like: Tensor) -> Iterator[Tensor | None]:
        """Parts (R, P) of the spatial basis, on the device and in the type of ``like``; one None for colour alone."""
        if self.size is None:
            yield None
        else:
            psi = _psi(*self.size, self.sigma_xy, self.space_tol, like.dtype, like.device)
            yield from torch.split(psi, min(_RANKS_AT_ONCE, self.at_once(2)))

    def at_once(self, others: int) -> int:
        """How many channels or spatial functions fit into the workspace, if each is needed ``others`` times."""
        basis = color_basis(self.sigma, self.tol)
        return max(1, _WORKSPACE // (others * max(4 * basis.cells**3, basis.rank**3)))


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """W·v among the frames of each group.

    Args:
        rgb: (F, 3, P) colours in 0–255.
        values: (F, C, P) float32 or float64.
        group: (F,) int64 index of each frame's group, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity.

    Returns:
        (F, C, P).
    """
    gaussian.check()
    if values.numel() == 0:
        return torch.zeros_like(values)
    rgb, gaussian = _fit(rgb, gaussian, values)
    near, size = gaussian.window(), gaussian.size
    if near and size:
        return window_product(rgb, values, size, gaussian.sigma, gaussian.sigma_xy, near)
    if _too_fine(rgb, gaussian):
        parts = (_dense(rgb, values, group, gaussian.sigma, psi) for psi in gaussian.space(values))
    else:
        backend, basis = _backend(values), color_basis(gaussian.sigma, gaussian.tol)
        channels = gaussian.at_once(1 if gaussian.size is None else _RANKS_AT_ONCE)
        if values.shape[1] > channels:
            few = torch.split(values, channels, dim=1)
            return torch.cat([product(rgb, v, group, groups, gaussian) for v in few], dim=1)
        parts = (backend.product(rgb, values, group, groups, basis, psi) for psi in gaussian.space(values))
    total: Tensor = sum(parts, start=next(parts))
    return total


def energy(rgb: Tensor, maps: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> tuple[Tensor, Tensor]:
    """The sums 1ᵀW1 and DᵀWD of each group, and WD, where D = S - ½.

    They give R = Σ_r S_rᵀ W (1 - S_r) = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S = -4·WD without the cancellation of W1 - 2·WS. D has
    both signs, and the tolerance holds for WD, too.

    Args:
        rgb: (F, 3, P) colours in 0–255.
        maps: S, (F, P) float32 or float64.
        group: (F,) int64 index of each frame's group, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity.

    Returns:
        totals (groups, 2) float64, and WD (F, P).
    """
    gaussian.check()
    rgb, gaussian = _fit(rgb, gaussian.for_signed(), maps)
    if maps.numel() == 0 or gaussian.window() or _too_fine(rgb, gaussian):
        values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
        out = product(rgb, values, group, groups, gaussian)
        totals = torch.zeros(groups, 2, dtype=torch.float64, device=maps.device)
        return totals.index_add_(0, group, (values * out).sum(2, dtype=torch.float64)), out[:, 1]
    backend, basis = _backend(maps), color_basis(gaussian.sigma, gaussian.tol)
    parts = [backend.energy(rgb, maps, group, groups, basis, psi) for psi in gaussian.space(maps)]
    totals, out = parts[0]
    for other_totals, other in parts[1:]:
        totals, out = totals + other_totals, out + other
    return totals, out


def on_kernels(values: Tensor) -> bool:
    """Whether Triton kernels compute with these values."""
    return values.is_cuda and values.dtype == torch.float32 and values.numel() > 0 and find_spec("triton") is not None


def _backend(values: Tensor) -> ModuleType:
    """The module whose ``product`` and ``energy`` compute with these values."""
    if not on_kernels(values):
        return cpu
    from colocam.losses.affinity import cuda  # noqa: PLC0415 - Triton is not everywhere

    return cuda


@lru_cache(maxsize=16)
def _psi(height: int, width: int, sigma: float, tol: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    psi = torch.as_tensor(space_basis(height, width, sigma, tol), dtype=dtype, device=device)
    return psi.flatten(1).contiguous()


def _fit(rgb: Tensor, gaussian: Gaussian, values: Tensor) -> tuple[Tensor, Gaussian]:
    """Shift colours outside 0–255 into that range, and scale them and σ alike if needed; the affinity stays the same.

    For the kernels on CUDA the host would have to wait for the range of the colours; they clamp colours to half a cell
    outside.
    """
    if rgb.dtype == torch.uint8 or on_kernels(values) or rgb.numel() == 0:
        return rgb, gaussian
    low, high = (float(end) for end in (rgb if rgb.is_floating_point() else rgb.float()).aminmax())
    if (low >= -0.5 and high <= 255.5) or not math.isfinite(high - low):
        return rgb, gaussian
    if high - low > _WIDEST:
        raise ColocamError(f"affinity: rgb must be in 0–255, got colours from {low:g} to {high:g}")
    scale = min(1.0, 255.0 / (high - low))
    return (rgb.double() - low) * scale, gaussian._replace(sigma=gaussian.sigma * scale)


def _too_fine(rgb: Tensor, gaussian: Gaussian) -> bool:
    """Whether the Gaussian is too narrow for cells of one level while colours lie between the levels."""
    needed = cells_for(gaussian.sigma, gaussian.tol)
    return needed > MAX_CELLS and rgb.is_floating_point() and bool((rgb != rgb.round()).any())


def _dense(rgb: Tensor, values: Tensor, group: Tensor, sigma: float, psi: Tensor | None) -> Tensor:
    """The exact product, for Gaussians narrower than any cell."""
    out = torch.zeros_like(values)
    for index in sorted(set(group.tolist())):
        mine = (group == index).nonzero()[:, 0]
        colors = rgb[mine].transpose(1, 2).flatten(0, 1) / sigma
        for weight in values.new_ones(1, values.shape[2]) if psi is None else psi:
            v = (weight * values[mine]).transpose(1, 2)
            result = gaussian_sum(colors, v.flatten(0, 1)).view_as(v).transpose(1, 2)
            out[mine] += (weight * result).to(out.dtype)
    return out


def color_product(
    rgb: Tensor, values: Tensor, sigma: float = 15.0, tol: float = 5e-3, *, sequences: Tensor | None = None
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ²) between all pixels of a sequence, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU. On CUDA the values are not checked, since that would make the
    host wait; there it makes the result NaN.

    Args:
        rgb: (…, N, 3) colours in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (…, N, C) floating. Differentiable: W is symmetric, so the gradient is one more product.
        sigma: width of the Gaussian in colour levels.
        tol: relative L2 error to aim at.
        sequences: which pixels form a sequence; by default, those of one leading index. Either integer indices of
            shape (…,), one for each leading index: frames with the same index are joined. Or of shape (…, N), one for
            each pixel: sequences of different lengths in one call.

    Returns:
        (…, N, C) float32, or float64 if ``values`` are: sums over many pixels exceed the range of float16.
    """
    if values.dim() < 2 or rgb.shape[-1:] != (3,) or rgb.shape[:-1] != values.shape[:-1]:
        raise ColocamError(
            f"color_product: needs rgb (…, N, 3) and values (…, N, C), got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("color_product", rgb=rgb, values=values)
    gaussian = Gaussian(float(sigma), float(tol))
    if sequences is not None:
        _require_indices(sequences)
    if sequences is not None and sequences.shape == values.shape[:-1]:
        return _ragged(rgb, values, gaussian, sequences)
    frames = values.shape[:-2].numel()
    group = torch.arange(frames) if sequences is None else sequences.reshape(-1)
    if len(group) != frames:
        raise ColocamError(
            f"color_product: sequences must have shape {tuple(values.shape[:-2])} (one index a frame) or "
            f"{tuple(values.shape[:-1])} (one index a pixel), got {tuple(group.shape)}"
        )
    groups = frames if sequences is None or frames == 0 else int(group.max()) + 1
    flat = values.reshape(frames, *values.shape[-2:]).transpose(1, 2)
    colors = rgb.reshape(frames, *rgb.shape[-2:]).transpose(1, 2)
    return _product("color_product", colors, flat, group.long(), groups, gaussian).transpose(1, 2).reshape(values.shape)


def bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU; on CUDA it makes the result NaN (see :func:`color_product`).

    Args:
        rgb: (B, 3, H, W) colours in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (B, C, H, W) floating, differentiable.
        sigma_rgb: width of the Gaussian in colour levels.
        sigma_xy: width of the Gaussian in pixels; a large share of the frame, or a few pixels, is computed fastest.
        tol: relative L2 error to aim at.

    Returns:
        (B, C, H, W) float32, or float64 if ``values`` are.
    """
    mismatch = rgb.dim() != 4 or values.dim() != 4 or rgb.shape[1] != 3 or len(rgb) != len(values)
    if mismatch or rgb.shape[2:] != values.shape[2:]:
        raise ColocamError(
            "bilateral_product: needs rgb (B, 3, H, W) and values (B, C, H, W), "
            f"got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("bilateral_product", rgb=rgb, values=values)
    frames, (height, width) = len(rgb), rgb.shape[-2:]
    gaussian = Gaussian(float(sigma_rgb), float(tol), float(sigma_xy), (height, width))
    colors, flat, group = rgb.flatten(2), values.flatten(2), torch.arange(frames)
    return _product("bilateral_product", colors, flat, group, frames, gaussian).view(values.shape)


def _require_indices(sequences: Tensor) -> None:
    if sequences.is_floating_point() or sequences.is_complex() or sequences.dtype == torch.bool:
        raise ColocamError(f"color_product: sequences must be integers, got {sequences.dtype}")
    if sequences.numel() and int(sequences.min()) < 0:
        raise ColocamError(f"color_product: sequences must be 0 or larger, got {int(sequences.min())}")


def _ragged(rgb: Tensor, values: Tensor, gaussian: Gaussian, sequences: Tensor) -> Tensor:
    """Sequences of any lengths, padded with pixels of value 0, which change no other pixel's sum."""
    index = sequences.reshape(-1)
    if len(index) == 0:
        return values.clone()
    order = index.argsort(stable=True)
    lengths = index.unique(return_counts=True)[1].tolist()  # type: ignore[no-untyped-call]
    colors, v = (torch.split(x.reshape(len(index), x.shape[-1])[order], lengths) for x in (rgb, values))
    padded = [pad_sequence(list(x), batch_first=True).transpose(1, 2) for x in (colors, v)]
    group = torch.arange(len(lengths))
    out = _product("color_product", padded[0], padded[1], group, len(lengths), gaussian)
    flat = torch.cat([o[:, :n].T for o, n in zip(out, lengths, strict=True)])
    return torch.empty_like(flat).index_copy(0, order, flat).view(values.shape)


def _product(name: str, rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """:func:`product`, differentiable in the values, in at least float32."""
    if not values.is_floating_point():
        raise ColocamError(f"{name}: values must be floating, got {values.dtype}")
    if rgb.requires_grad:
        raise ColocamError(f"{name}: rgb must not require a gradient; pass rgb.detach()")
    wide = values if values.dtype == torch.float64 else values.float()
    out: Tensor = _Product.apply(rgb, wide, group.to(values.device), groups, gaussian)
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, *affinity: Any) -> Tensor:  # noqa: ANN401
        ctx.rgb, ctx.affinity = rgb, affinity
        with torch.autocast(values.device.type, enabled=False):
            return product(rgb, values, *affinity)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        return None, _Product.apply(ctx.rgb, gradient, *ctx.affinity), None, None, None
