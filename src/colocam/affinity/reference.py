"""The exact products in float64, which all other implementations are tested against: O(N²) operations."""

import torch
from torch import Tensor

# Affinities in memory at once: on the CPU the 2 MB that a core caches, elsewhere 128 MB.
_CPU_BLOCK, _BLOCK = 1 << 18, 1 << 24


def gaussian_sum(features: Tensor, values: Tensor, rows: Tensor | None = None) -> Tensor:
    """Σ_j exp(-|f_i - f_j|² / 2) v_j for the pixels ``rows``: features (N, D), values (N, C) -> (len(rows), C)."""
    features, values = features.double(), values.double()
    queries = features if rows is None else features[rows]
    block_size = _BLOCK if features.is_cuda else _CPU_BLOCK
    return torch.cat(
        [
            torch.exp(-0.5 * sum((q[:, None] - f) ** 2 for q, f in zip(block.T, features.T, strict=True))) @ values
            for block in torch.split(queries, max(1, block_size // len(features)))
        ]
    )


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
