"""Sums over pairs of pixels: the exact products in float64, and a sum over the neighbours of each pixel."""

import math

import torch
from torch import Tensor

# Affinities in memory at once: on the CPU the 2 MB that a core caches, elsewhere 128 MB.
_CPU_BLOCK, _BLOCK = 1 << 18, 1 << 24


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
        rgb: (N, 3) colours in 0–255.
        values: (N, C).
        sigma: width of the Gaussian in colour levels.
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
        rgb: (B, 3, H, W) colours in 0–255.
        values: (B, C, H, W).
        sigma_rgb: width of the Gaussian in colour levels.
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


# exp(-80) is 0 beside W_ii = 1; results that float32 cannot represent make exp 30 times slower on the CPU.
_LEAST = -80.0


def reach(size: tuple[int, int], sigma: float, tol: float) -> tuple[int, int]:
    """Rows and columns beyond which Gaussian neighbours of width ``sigma`` add less than ``tol`` together."""
    radius = math.ceil(sigma * math.sqrt(2 * math.log(8 / tol)))
    height, width = (max(n, 1) for n in size)
    return min(radius, height - 1), min(radius, width - 1)


def window_product(
    rgb: Tensor, values: Tensor, size: tuple[int, int], sigma_rgb: float, sigma_xy: float, window: tuple[int, int]
) -> Tensor:
    """Σ_q exp(-|c_p - c_q|² / 2σ_rgb² - |p - q|² / 2σ_xy²) v_q over the neighbours within ``window``, in each frame.

    Args:
        rgb: (F, 3, P).
        values: (F, C, P) floating.
        size: (height, width) of a frame, P = height · width.
        sigma_rgb: width in colour levels.
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
