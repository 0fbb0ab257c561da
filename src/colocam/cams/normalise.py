"""Scale maps to 0–1 and to the size of the frame."""

import torch
import torch.nn.functional as F
from torch import Tensor


def min_max(maps: Tensor) -> Tensor:
    """Scale each map linearly so that its minimum is 0 and its maximum 1: ``(M − min M) / (max M − min M)``.

    Args:
        maps: (B, h, w).

    Returns:
        (B, h, w) in 0–1; a constant map becomes 0 everywhere.
    """
    low = maps.amin(dim=(1, 2), keepdim=True)
    spread = maps.amax(dim=(1, 2), keepdim=True) - low
    return torch.where(spread > 0, (maps - low) / torch.where(spread > 0, spread, 1.0), 0.0)


def full_size(maps: Tensor, size: int) -> Tensor:
    """Scale (B, h, w) to 0–1, then resize bilinearly to (B, size, size), in this order, as published."""
    return F.interpolate(min_max(maps)[:, None], size=(size, size), mode="bilinear", align_corners=False)[:, 0]
