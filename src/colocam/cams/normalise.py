"""CAMs of different frames on one scale, at the size of the frame."""

import torch
import torch.nn.functional as F
from torch import Tensor


def min_max(cams: Tensor) -> Tensor:
    """(B, h, w) → each map's smallest value to 0 and its largest to 1; a constant map becomes all zero."""
    low = cams.amin(dim=(1, 2), keepdim=True)
    spread = cams.amax(dim=(1, 2), keepdim=True) - low
    return torch.where(spread > 0, (cams - low) / torch.where(spread > 0, spread, 1.0), 0.0)


def full_size(cams: Tensor, size: int) -> Tensor:
    """Normalise (B, h, w) at their own resolution, then resize to (B, size, size), as published."""
    return F.interpolate(min_max(cams)[:, None], size=(size, size), mode="bilinear", align_corners=False)[:, 0]
