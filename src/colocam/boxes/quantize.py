"""Maps as 8-bit levels, and thresholds that follow from the levels alone; arrays need no torch."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.types import Levels

if TYPE_CHECKING:
    from torch import Tensor

Array = npt.NDArray[np.floating] | Levels
Maps: TypeAlias = "Tensor | Array"
"""(B, H, W): floats in 0–1, or uint8 levels taken as they are."""
UNDECIDED = 0.5
"""τ where all maps are constant, so that no threshold follows from them."""


@overload
def to_8bit(maps: "Tensor") -> "Tensor": ...
@overload
def to_8bit(maps: Array) -> Levels: ...
def to_8bit(maps: Maps) -> "Tensor | Levels":
    """Levels ⌊255·map⌋ of maps in 0–1, uint8, same shape and device; uint8 maps pass through.

    Half-precision maps are converted to float32 first, since 255·map needs more bits. Values are not checked: on a GPU
    that would make the host wait.
    """
    if isinstance(maps, np.ndarray):
        if maps.dtype == np.uint8:
            return np.asarray(maps, np.uint8)
        return (255 * maps.astype(np.result_type(maps, np.float32), copy=False)).astype(np.uint8)
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    if maps.dtype == torch.uint8:
        return maps
    wide = maps if maps.dtype == torch.float64 else maps.float()
    return (255 * wide).to(torch.uint8)


def checked_levels(maps: Maps) -> Levels:
    """``to_8bit`` as a contiguous (B, H, W) array in host memory, after checking shape and values."""
    if maps.ndim != 3 or 0 in maps.shape[1:]:
        raise ColocamError(f"maps must have shape (frames, height, width), got {tuple(maps.shape)}")
    kind = str(maps.dtype)
    if "float" not in kind and not kind.endswith("uint8"):
        raise ColocamError(f"maps must be floats in 0–1 or uint8 levels, got {maps.dtype}")
    if "float" in kind and not bool(((maps >= 0) & (maps <= 1)).all()):
        raise ColocamError("maps must be in 0–1 without NaN: normalize them first")
    return np.ascontiguousarray(to_8bit(maps) if isinstance(maps, np.ndarray) else to_8bit(maps.detach()).cpu().numpy())


def otsu_levels(maps: "Tensor") -> "tuple[Tensor, Tensor]":
    """Otsu's threshold of each map: the level t of the largest variance between the classes ``≤ t`` and ``> t``.

    With class weights w₀ + w₁ = 1 and means μ₀, μ₁ the variance is w₀·w₁·(μ₀ − μ₁)² = (μ·w₀ − m₀)² / (w₀·w₁), where m₀
    is the first class's share of the mean μ. Of equal maxima the lowest t is chosen. The host does not wait for a GPU.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.

    Returns:
        levels (B,) int64: the foreground is ``to_8bit(maps) > levels[:, None, None]``;
        defined (B,) bool: False for a constant map, which has no threshold (its level is the constant itself).
    """
    import torch  # noqa: PLC0415

    level = torch.arange(256, dtype=torch.float64, device=maps.device)
    pixels = to_8bit(maps).flatten(1).long()
    counts = level.new_zeros(len(pixels), 256).scatter_add_(1, pixels, level.new_ones(()).expand_as(pixels))
    total = counts.sum(1, keepdim=True)
    below = counts.cumsum(1)
    above = total - below
    mass = (counts * level).cumsum(1)
    # The formula above times a constant, in whole numbers: exact to 2⁵³, so that equal variances compare as equal.
    difference = mass[:, -1:] * below - mass * total
    split = (below > 0) & (above > 0)
    between = torch.where(split, difference.square() / (below * above).clamp(min=1), -1.0)
    defined = split.any(1)
    candidates = torch.where(defined[:, None], between == between.amax(1, keepdim=True), counts > 0)
    # argmax does not guarantee the first of equal maxima; a minimum over indices does.
    return torch.where(candidates, level, 256.0).amin(1).long(), defined


def tags_only_threshold(maps: Iterable[Levels]) -> float:
    """τ = mean of many maps (H, W), each relative to its maximum: foreground is above the average.

    Otsu's threshold, which the seeds use, is too high for boxes: it excludes the weak parts of an object
    (docs/method/tags-only.md).
    """
    counts: npt.NDArray[np.int64] = np.zeros(256, np.int64)
    for level in maps:
        relative = np.minimum(255 * np.arange(256) // max(int(level.max(initial=0)), 1), 255)
        np.add.at(counts, relative, np.bincount(level.reshape(-1), minlength=256))
    if (counts > 0).sum() < 2:
        return UNDECIDED
    return float(counts @ np.arange(256)) / float(counts.sum()) / 255
