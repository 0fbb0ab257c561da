"""Maps as 8-bit levels, the resolution at which the published protocol thresholds them."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.errors import ColocamError

Maps = Tensor | npt.NDArray[np.floating] | npt.NDArray[np.uint8]
"""(B, H, W): floats in 0–1, or uint8 levels taken as they are."""


def to_8bit(maps: Tensor) -> Tensor:
    """Levels ⌊255·map⌋ of maps in 0–1, uint8, same shape and device; uint8 maps pass through.

    Half-precision maps are widened first: 255·map has too few bits there. Values are not checked, since a look at
    them would make a GPU wait.
    """
    if maps.dtype == torch.uint8:
        return maps
    wide = maps if maps.dtype == torch.float64 else maps.float()
    return (255 * wide).to(torch.uint8)


def checked_levels(maps: Maps) -> npt.NDArray[np.uint8]:
    """``to_8bit`` as a contiguous (B, H, W) array in host memory, after checking shape and values."""
    tensor = torch.as_tensor(maps).detach()
    if tensor.ndim != 3 or 0 in tensor.shape[1:]:
        raise ColocamError(f"maps must have the shape (frames, height, width), not {tuple(tensor.shape)}")
    if tensor.dtype != torch.uint8:
        if not tensor.is_floating_point():
            raise ColocamError(f"maps must be floats in 0–1 or uint8 levels, not {tensor.dtype}")
        if tensor.numel() and not bool(((tensor >= 0) & (tensor <= 1)).all()):
            raise ColocamError("a map holds values outside 0–1 or not-a-numbers: normalise the maps first")
    return np.ascontiguousarray(to_8bit(tensor).cpu().numpy())
