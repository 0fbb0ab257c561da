"""``W·v`` for bilateral affinities that are narrow compared with the frame: a sum over the neighbours of each pixel.

A narrow spatial Gaussian has few neighbours that matter and many eigenvectors; a wide one has the opposite.
"""

import math

import torch
from torch import Tensor

# Affinities of a frame in memory at once where all pairs are computed; larger blocks leave the cache of a core.
_BLOCK = 1 << 13
# exp(-80) is 0 beside W_ii = 1; results that float32 cannot represent make exp 30 times slower on the CPU.
_LEAST = -80.0


def reach(size: tuple[int, int], sigma: float, tol: float) -> tuple[int, int]:
    """Rows and columns beyond which Gaussian neighbours of width ``sigma`` add less than ``tol`` together."""
    radius = math.ceil(sigma * math.sqrt(2 * math.log(8 / tol)))
    height, width = (max(n, 1) for n in size)
    return min(radius, height - 1), min(radius, width - 1)


def product(
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
    if (2 * rows + 1) * (2 * columns + 1) >= height * width:
        return _all_pairs(rgb, values, size, sigma_rgb, sigma_xy)
    colors = rgb.to(values.dtype).reshape(len(rgb), 3, height, width) / sigma_rgb
    v = values.reshape(*values.shape[:2], height, width)
    out = v.clone(memory_format=torch.contiguous_format)
    for dy in range(rows + 1):
        # Each pair of pixels once: W is symmetric.
        for dx in range(-columns if dy else 1, columns + 1):
            left, right = max(0, -dx), max(0, dx)
            here = (..., slice(0, height - dy), slice(left, width - right))
            there = (..., slice(dy, height), slice(right, width - left))
            near = (dy**2 + dx**2) / (2 * sigma_xy**2)
            exponent = -0.5 * (colors[here] - colors[there]).square().sum(1, keepdim=True) - near
            weight = exponent.clamp_(min=_LEAST).exp_()
            out[here] += weight * v[there]
            out[there] += weight * v[here]
    return out.flatten(2)


def _all_pairs(rgb: Tensor, values: Tensor, size: tuple[int, int], sigma_rgb: float, sigma_xy: float) -> Tensor:
    """The same over all pixels of the frame: one matrix product instead of several operations per neighbour."""
    y, x = torch.meshgrid(*(torch.arange(n, dtype=torch.float64, device=rgb.device) for n in size), indexing="ij")
    position = torch.stack([y, x]).flatten(1).expand(len(rgb), -1, -1)
    # -|f - g|²/2 = f·g - |f|²/2 - |g|²/2 cancels, so that it needs float64.
    f = torch.cat([rgb.double() / sigma_rgb, position / sigma_xy], dim=1)
    f = f - f.mean(2, keepdim=True)
    half, one = -0.5 * f.square().sum(1, keepdim=True), torch.ones_like(f[:, :1])
    queries, keys = torch.cat([f, half, one], dim=1).transpose(1, 2), torch.cat([f, one, half], dim=1)
    weights = (
        (block @ keys).to(values.dtype).clamp_(_LEAST, 0).exp_()
        for block in torch.split(queries, max(1, _BLOCK // f.shape[2]), dim=1)
    )
    return torch.cat([weight @ values.transpose(1, 2) for weight in weights], dim=1).transpose(1, 2)
