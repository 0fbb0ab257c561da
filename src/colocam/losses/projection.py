"""Projection of a map onto the sides of a box (BoxInst, Tian et al. 2021)."""

import torch
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.utils.tensors import require_finite


class ProjectionLoss(nn.Module):
    """Mean over frames with a box of ½ Σ_axis (1 − 2 Σ p t / (Σ p² + Σ t²)); 0 if no frame has one.

    p is the maximum of the map along x or along y, t is the same of the box: 1 where the box is, 0 elsewhere. A tight
    box has foreground in each of its rows and columns, and none in the others; where in a row it is, stays open.

    >>> loss = ProjectionLoss()
    >>> maps = torch.rand(1, 8, 8, requires_grad=True)
    >>> inside = torch.zeros(1, 8, 8, dtype=torch.bool)
    >>> inside[:, 2:5, 1:7] = True
    >>> loss(maps, inside).backward()
    """

    def forward(self, maps: Tensor, inside: Tensor) -> Tensor:
        """Maps (B, H, W) foreground probability, inside (B, H, W) whether a pixel is in a box → scalar."""
        if maps.shape != inside.shape or maps.dim() != 3:
            raise ColocamError(
                f"ProjectionLoss: needs maps and inside (B, H, W), got {tuple(maps.shape)} and {tuple(inside.shape)}"
            )
        require_finite("ProjectionLoss", maps=maps)
        s, t = (maps if maps.dtype == torch.float64 else maps.float()), inside.to(maps.dtype)
        each = sum((_dice(s.amax(axis), t.amax(axis).to(s.dtype)) for axis in (1, 2)), start=s.new_zeros(len(s)))
        counted = inside.flatten(1).any(1).to(s.dtype)
        return (each * counted).sum() / 2 / counted.sum().clamp(min=1)


def _dice(p: Tensor, t: Tensor) -> Tensor:
    """(B,) 1 − 2 Σ p t / (Σ p² + Σ t²) of (B, N) each."""
    return 1 - 2 * (p * t).sum(1) / (p.square().sum(1) + t.square().sum(1)).clamp(min=1e-6)
