"""Products W·v with color and bilateral affinities, differentiable in v.

``product`` and ``energy`` choose how: in color cells, by Triton kernels on CUDA, otherwise on the CPU, in C; for few
neighbors by a sum over them; for frames too small and Gaussians too narrow for cells by the exact product in float64.

Tests: tests/losses/affinity/test_products.py, tests/losses/affinity/test_window.py,
tests/losses/affinity/test_gradient_error.py.
"""

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from colocam.errors import ColocamError
from colocam.losses.affinity import cpu
from colocam.losses.affinity.basis import MAX_CELLS, cells_for, color_basis, space_basis, space_rank
from colocam.utils.tensors import require_finite

# Spatial functions that are handled together; more need more memory and save no time.
_RANKS_AT_ONCE = 16
# Largest number of values in moments or spectra, 512 MB of float32: narrow Gaussians have many cells and eigenvectors.
_WORKSPACE = 1 << 27
# Cost of one spatial function per pixel and per cell, relative to that of one pair of neighboring pixels.
_COST_PER_PIXEL, _COST_PER_CELL = 2, 3
# Widest range of colors that can be an overshoot of resizing; a wider one is another scale than 0–255.
_WIDEST = 512.0
# Relative error of a product with values of random signs, over that with positive ones; measured with uniform colors.
_SIGNED_ERROR = 0.12 / 0.07
# Shares of the tolerance; their squares add up to 1. One more spatial function costs less than more cells.
_COLOR_SHARE, _SPACE_SHARE = 0.93, 0.35
# Affinities in memory at once: on the CPU the 2 MB that a core caches, elsewhere 128 MB.
_CPU_BLOCK, _BLOCK = 1 << 18, 1 << 24
# exp(-80) is 0 beside W_ii = 1; results that float32 cannot represent make exp 30 times slower on the CPU.
_LEAST = -80.0


class Gaussian(NamedTuple):
    """The affinity: exp(-|c - c'|² / 2σ²), and where ``size`` is given, times exp(-|p - p'|² / 2σ_xy²).

    Attributes:
        sigma: width in color levels.
        tol: relative error to aim at.
        sigma_xy: width in pixels.
        size: (height, width) of a frame, None for color alone.
        tol_xy: relative error of the spatial part; None: ``tol``.
    """

    sigma: float
    tol: float
    sigma_xy: float = 0.0
    size: tuple[int, int] | None = None
    tol_xy: float | None = None

    def for_signed(self) -> "Gaussian":
        """The same with ``tol`` for values of any sign: there, errors of W do not cancel, but its entries do.

        With random signs, the relative error of W·v is that of W itself in the Frobenius norm. Those of the color
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
        """Rows and columns of neighbors to sum over; None if the spatial basis is cheaper."""
        if self.size is None:
            return None
        rows, columns = reach(self.size, self.sigma_xy, self.space_tol)
        pixels, cells = self.size[0] * self.size[1], min(cells_for(self.sigma, self.tol), MAX_CELLS) ** 3
        neighbors = ((2 * rows + 1) * (2 * columns + 1) - 1) // 2
        functions = space_rank(*self.size, self.sigma_xy, self.space_tol)
        cheaper = neighbors * pixels <= functions * (_COST_PER_PIXEL * pixels + _COST_PER_CELL * cells)
        return (rows, columns) if cheaper else None

    def space(self, like: Tensor) -> Iterator[Tensor | None]:
        """Parts (R, P) of the spatial basis, on the device and in the type of ``like``; one None for color alone."""
        if self.size is None:
            yield None
        else:
            psi = _psi(*self.size, self.sigma_xy, self.space_tol, like.dtype, like.device)
            basis = color_basis(self.sigma, self.tol)
            most = _WORKSPACE // (2 * max(4 * basis.cells**3, basis.rank**3))  # two channels each
            yield from torch.split(psi, max(1, min(_RANKS_AT_ONCE, most)))


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """W·v among the frames of each group.

    Args:
        rgb: (F, 3, P) colors in 0–255.
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
    if near and size and (2 * near[0] + 1) * (2 * near[1] + 1) < size[0] * size[1]:
        return window_product(rgb, values, size, gaussian.sigma, gaussian.sigma_xy, near)
    if near or _too_fine(rgb, gaussian):
        return _dense(rgb, values, group, gaussian)
    return _in_cells(rgb, values, group, groups, gaussian)


def energy(rgb: Tensor, maps: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> tuple[Tensor, Tensor]:
    """The sums 1ᵀW1 and DᵀWD of each group, and WD, where D = S - ½.

    They give R = Σ_r S_rᵀ W (1 - S_r) = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S = -4·WD without the cancellation of W1 - 2·WS. D has
    both signs, and the tolerance holds for WD, too.

    Args:
        rgb: (F, 3, P) colors in 0–255.
        maps: S, (F, P) float32 or float64.
        group: (F,) int64 index of each frame's group, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity.

    Returns:
        totals (groups, 2) float64, and WD (F, P).
    """
    gaussian.check()
    rgb, gaussian = _fit(rgb, gaussian.for_signed(), maps)
    totals = torch.zeros(groups, 2, dtype=torch.float64, device=maps.device)
    if maps.numel() == 0 or gaussian.window() or _too_fine(rgb, gaussian):
        values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
        out = product(rgb, values, group, groups, gaussian)
        return totals.index_add_(0, group, (values * out).sum(2, dtype=torch.float64)), out[:, 1]
    out = _in_cells(rgb, maps[:, None], group, groups, gaussian, totals)
    return totals, out[:, 0]


def on_kernels(values: Tensor) -> bool:
    """Whether Triton kernels compute with these values."""
    return values.is_cuda and values.dtype == torch.float32 and values.numel() > 0 and find_spec("triton") is not None


def _in_cells(
    rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian, totals: Tensor | None = None
) -> Tensor:
    """``cpu.product``, or that of the kernels, summed over the parts of the spatial basis."""
    multiply = cpu.product
    if on_kernels(values):
        from colocam.losses.affinity import cuda  # noqa: PLC0415 - Triton is not everywhere

        multiply = cuda.product
    basis = color_basis(gaussian.sigma, gaussian.tol)
    return reduce(
        torch.add, (multiply(rgb, values, group, groups, basis, psi, totals) for psi in gaussian.space(values))
    )


@lru_cache(maxsize=16)
def _psi(height: int, width: int, sigma: float, tol: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    psi = torch.as_tensor(space_basis(height, width, sigma, tol), dtype=dtype, device=device)
    return psi.flatten(1).contiguous()


def _fit(rgb: Tensor, gaussian: Gaussian, values: Tensor) -> tuple[Tensor, Gaussian]:
    """Shift colors outside 0–255 into that range, and scale them and σ alike if needed; the affinity stays the same.

    For the kernels on CUDA the host would have to wait for the range of the colors; they clamp colors to half a cell
    outside.
    """
    if rgb.dtype == torch.uint8 or on_kernels(values) or rgb.numel() == 0:
        return rgb, gaussian
    low, high = (float(end) for end in (rgb if rgb.is_floating_point() else rgb.float()).aminmax())
    if (low >= -0.5 and high <= 255.5) or not math.isfinite(high - low):
        return rgb, gaussian
    if high - low > _WIDEST:
        raise ColocamError(f"affinity: rgb must be in 0–255, got colors from {low:g} to {high:g}")
    scale = min(1.0, 255.0 / (high - low))
    return (rgb.double() - low) * scale, gaussian._replace(sigma=gaussian.sigma * scale)


def _too_fine(rgb: Tensor, gaussian: Gaussian) -> bool:
    """Whether the Gaussian is too narrow for cells of one level while colors lie between the levels."""
    needed = cells_for(gaussian.sigma, gaussian.tol)
    return needed > MAX_CELLS and rgb.is_floating_point() and bool((rgb != rgb.round()).any())


def _dense(rgb: Tensor, values: Tensor, group: Tensor, gaussian: Gaussian) -> Tensor:
    """The exact product, for small frames and for Gaussians narrower than any cell; with space, a frame is a group."""
    if gaussian.size is not None:
        frames, v = (x.reshape(*x.shape[:2], *gaussian.size) for x in (rgb, values))
        return dense_bilateral_product(frames, v, gaussian.sigma, gaussian.sigma_xy).to(values.dtype)
    out = torch.empty_like(values)
    for index in group.unique():  # type: ignore[no-untyped-call]
        mine = group == index
        colors, v = (x[mine].transpose(1, 2) for x in (rgb, values))
        exact = dense_color_product(colors.flatten(0, 1), v.flatten(0, 1), gaussian.sigma)
        out[mine] = exact.view(v.shape).transpose(1, 2).to(out.dtype)
    return out


def color_product(rgb: Tensor, values: Tensor, sigma: float = 15.0, tol: float = 5e-3) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ²) between all pixels of a leading index, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU. On CUDA the values are not checked, since that would make the
    host wait; there it makes the result NaN.

    Args:
        rgb: (…, N, 3) colors in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (…, N, C) floating. Differentiable: W is symmetric, so the gradient is one more product.
        sigma: width of the Gaussian in color levels.
        tol: relative L2 error to aim at.

    Returns:
        (…, N, C) float32, or float64 if ``values`` are: sums over many pixels exceed the range of float16.
    """
    if values.dim() < 2 or rgb.shape[-1:] != (3,) or rgb.shape[:-1] != values.shape[:-1]:
        raise ColocamError(
            f"color_product: needs rgb (…, N, 3) and values (…, N, C), got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("color_product", rgb=rgb, values=values)
    count = values.shape[:-2].numel()
    colors, flat = (x.reshape(count, *x.shape[-2:]).transpose(1, 2) for x in (rgb, values))
    out = _product("color_product", colors, flat, Gaussian(float(sigma), float(tol)))
    return out.transpose(1, 2).reshape(values.shape)


def bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU; on CUDA it makes the result NaN (see :func:`color_product`).

    Args:
        rgb: (B, 3, H, W) colors in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (B, C, H, W) floating, differentiable.
        sigma_rgb: width of the Gaussian in color levels.
        sigma_xy: width of the Gaussian in pixels; a large share of the frame, or a few pixels, is computed fastest.
        tol: relative L2 error to aim at.

    Returns:
        (B, C, H, W) float32, or float64 if ``values`` are.
    """
    if rgb.dim() != 4 or values.dim() != 4 or rgb.shape != (len(values), 3, *values.shape[2:]):
        raise ColocamError(
            "bilateral_product: needs rgb (B, 3, H, W) and values (B, C, H, W), "
            f"got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("bilateral_product", rgb=rgb, values=values)
    gaussian = Gaussian(float(sigma_rgb), float(tol), float(sigma_xy), (rgb.shape[2], rgb.shape[3]))
    return _product("bilateral_product", rgb.flatten(2), values.flatten(2), gaussian).view(values.shape)


def _product(name: str, rgb: Tensor, values: Tensor, gaussian: Gaussian) -> Tensor:
    """:func:`product` with a group for each frame, differentiable in the values, in at least float32."""
    if not values.is_floating_point():
        raise ColocamError(f"{name}: values must be floating, got {values.dtype}")
    if rgb.requires_grad:
        raise ColocamError(f"{name}: rgb must not require a gradient; pass rgb.detach()")
    out: Tensor = _Product.apply(rgb, values if values.dtype == torch.float64 else values.float(), gaussian)
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, gaussian: Gaussian) -> Tensor:  # noqa: ANN401
        ctx.rgb, ctx.gaussian = rgb, gaussian
        with torch.autocast(values.device.type, enabled=False):
            return product(rgb, values, torch.arange(len(rgb), device=values.device), len(rgb), gaussian)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        return None, _Product.apply(ctx.rgb, gradient, ctx.gaussian), None


def gaussian_sum(features: Tensor, values: Tensor, rows: Tensor | None = None) -> Tensor:
    """Σ_j exp(-|f_i - f_j|² / 2) v_j for the pixels ``rows``: features (N, D), values (N, C) -> (len(rows), C)."""
    values = values.double()
    f = features.double() - features.double().mean(0)
    f = torch.cat([f, -0.5 * f.square().sum(1, keepdim=True), torch.ones_like(f[:, :1])], dim=1)
    order = [*range(f.shape[1] - 2), -1, -2]  # -|f - g|²/2 = f·g - |f|²/2 - |g|²/2
    queries, keys = f if rows is None else f[rows], f[:, order].T
    size = max(1, (_BLOCK if f.is_cuda else _CPU_BLOCK) // len(f))
    return torch.cat([torch.exp(block @ keys) @ values for block in torch.split(queries, size)])


def dense_color_product(rgb: Tensor, values: Tensor, sigma: float = 15.0, rows: Tensor | None = None) -> Tensor:
    """Exact ``W·v`` with W_ij = exp(-|c_i - c_j|² / 2σ²), in O(N²) float64 operations and bounded memory.

    Args:
        rgb: (N, 3) colors in 0–255.
        values: (N, C).
        sigma: width of the Gaussian in color levels.
        rows: indices of the pixels to return, all by default.

    Returns:
        (len(rows), C) float64.
    """
    return gaussian_sum(rgb.double() / sigma, values, rows)


def dense_bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, rows: Tensor | None = None
) -> Tensor:
    """Exact ``W·v`` with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame.

    Args:
        rgb: (B, 3, H, W) colors in 0–255.
        values: (B, C, H, W).
        sigma_rgb: width of the Gaussian in color levels.
        sigma_xy: width of the Gaussian in pixels.
        rows: flat indices y·W + x of the pixels to return, all by default.

    Returns:
        (B, C, len(rows)) float64.
    """
    height, width = rgb.shape[-2:]
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    position = torch.stack([y, x]).flatten(1).to(rgb.device) / sigma_xy
    features = torch.cat([rgb.double().flatten(2) / sigma_rgb, position.double().expand(len(rgb), -1, -1)], dim=1)
    return torch.stack([gaussian_sum(f.T, v.flatten(1).T, rows).T for f, v in zip(features, values, strict=True)])


def reach(size: tuple[int, int], sigma: float, tol: float) -> tuple[int, int]:
    """Rows and columns beyond which Gaussian neighbors of width ``sigma`` add less than ``tol`` together."""
    radius = math.ceil(sigma * math.sqrt(2 * math.log(8 / tol)))
    height, width = (max(n, 1) for n in size)
    return min(radius, height - 1), min(radius, width - 1)


def window_product(
    rgb: Tensor, values: Tensor, size: tuple[int, int], sigma_rgb: float, sigma_xy: float, window: tuple[int, int]
) -> Tensor:
    """Σ_q exp(-|c_p - c_q|² / 2σ_rgb² - |p - q|² / 2σ_xy²) v_q over the neighbors within ``window``, in each frame.

    Args:
        rgb: (F, 3, P).
        values: (F, C, P) floating.
        size: (height, width) of a frame, P = height · width.
        sigma_rgb: width in color levels.
        sigma_xy: width in pixels.
        window: rows and columns on each side.

    Returns:
        (F, C, P).
    """
    height, width = size
    rows, columns = window
    colors = rgb.to(values.dtype).reshape(len(rgb), 3, height, width)
    v = values.reshape(*values.shape[:2], height, width)
    out = v.clone(memory_format=torch.contiguous_format)
    for dy in range(rows + 1):
        # Each pair of pixels once: W is symmetric.
        for dx in range(-columns if dy else 1, columns + 1):
            left, right = max(0, -dx), max(0, dx)
            here = (..., slice(0, height - dy), slice(left, width - right))
            there = (..., slice(dy, height), slice(right, width - left))
            near = (dy**2 + dx**2) / (2 * sigma_xy**2)
            apart = (colors[here] - colors[there]).square().sum(1, keepdim=True)
            exponent = apart / (-2 * sigma_rgb**2) - near
            weight = exponent.clamp_(min=_LEAST).exp_()
            out[here] += weight * v[there]
            out[there] += weight * v[here]
    return out.flatten(2)
