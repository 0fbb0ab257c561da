"""Histograms of 8-bit maps and Otsu's threshold, for each map or for pooled maps."""

import torch
from torch import Tensor

from colocam.boxes.quantize import to_8bit


def otsu_levels(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Otsu's threshold of each map.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.

    Returns:
        levels (B,) int64: the foreground is ``to_8bit(maps) > levels[:, None, None]``;
        defined (B,) bool: False for a constant map, which has no threshold (its level is the constant itself).
    """
    return otsu_of_histogram(level_histogram(maps))


def level_histogram(maps: Tensor, *, relative: bool = False) -> Tensor:
    """Count the pixels of each map at each of the 256 levels.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.
        relative: scale the levels so that the maximum of each map becomes 255, for thresholds relative to the maximum;
            a map of zeros is not changed.

    Returns:
        (B, 256) int64 on the maps' device; rows may be summed and accumulated to pool maps.
    """
    levels = to_8bit(maps).flatten(1).long()
    if relative:
        levels = 255 * levels // levels.amax(1, keepdim=True).clamp(min=1)
    rows = torch.arange(len(levels), device=levels.device)[:, None] * 256
    flat = (rows + levels).flatten()
    counts = torch.zeros(len(levels) * 256, dtype=torch.int64, device=levels.device)
    return counts.scatter_add_(0, flat, torch.ones_like(flat)).view(-1, 256)


def otsu_of_histogram(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Level t that maximises the variance between the classes ``≤ t`` and ``> t``.

    With class weights w₀ + w₁ = 1 and means μ₀, μ₁ the variance is w₀·w₁·(μ₀ − μ₁)² = (μ·w₀ − m₀)² / (w₀·w₁), where m₀
    is the first class's share of the mean μ. Of equal maxima the lowest t is chosen.

    Args:
        counts: (..., 256) pixels per level.

    Returns:
        levels (...) int64 and defined (...) bool. With fewer than two different levels there is no threshold; the level
        is then that of the only occupied bin, or 0 without pixels.
    """
    counts = counts.double()
    total = counts.sum(-1, keepdim=True)
    level = torch.arange(256, dtype=torch.float64, device=counts.device)
    below = counts.cumsum(-1)
    above = total - below
    mass = (counts * level).cumsum(-1)
    # The formula above times a constant, in whole numbers: exact to 2⁵³, so that equal variances compare as equal.
    difference = mass[..., -1:] * below - mass * total
    split = (below > 0) & (above > 0)
    between = torch.where(split, difference.square() / (below * above).clamp(min=1), -1.0)
    defined = split.any(-1)
    candidates = torch.where(defined[..., None], between == between.amax(-1, keepdim=True), counts > 0)
    # argmax does not guarantee the first of equal maxima; a minimum over indices does.
    first = torch.where(candidates, level, 256.0).amin(-1)
    return first.where(first < 256, 0.0).long(), defined
