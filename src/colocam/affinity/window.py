"""``W·v`` for bilateral affinities that are narrow compared with the frame: a sum over the neighbours of each pixel.

A narrow spatial Gaussian has few neighbours that matter and many eigenvectors; a wide one has the opposite.
"""

import math

import torch
from torch import Tensor


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
    colors = rgb.to(values.dtype).reshape(len(rgb), 3, height, width) / sigma_rgb
    v = values.reshape(*values.shape[:2], height, width)
    out = v.clone(memory_format=torch.contiguous_format)
    rows, columns = window
    for dy in range(rows + 1):
        # Each pair of pixels once: W is symmetric.
        for dx in range(-columns if dy else 1, columns + 1):
            left, right = max(0, -dx), max(0, dx)
            here = (..., slice(0, height - dy), slice(left, width - right))
            there = (..., slice(dy, height), slice(right, width - left))
            near = (dy**2 + dx**2) / (2 * sigma_xy**2)
            weight = torch.exp(-0.5 * (colors[here] - colors[there]).square().sum(1, keepdim=True) - near)
            out[here] += weight * v[there]
            out[there] += weight * v[here]
    return out.flatten(2)
