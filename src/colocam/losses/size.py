"""Absolute size constraint, eq. 3: foreground and background both want to be large."""

import math

import torch
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.losses.checks import require_finite_on_cpu


def extended_log_barrier(f: Tensor, t: float) -> Tensor:
    """Penalty for the constraint f < 0: -log(-f)/t while f ≤ -1/t², beyond it the tangent there; finite everywhere."""
    edge = -1 / t**2
    inside = -torch.log(-f.clamp(max=edge)) / t
    outside = t * f - math.log(-edge) / t + 1 / t
    return torch.where(f <= edge, inside, outside)


class SizeConstraint(nn.Module):
    """Mean over frames of ½ [ELB(-Σ S⁰) + ELB(-Σ S¹)], areas in pixels.

    Args:
        t: sharpness of the barrier at epoch 0 (z in eq. 3).
        growth: factor on t from epoch to epoch.
        maximum: t stays here once reached.
    """

    def __init__(self, t: float = 1.0, growth: float = 1.01, maximum: float = 10.0) -> None:
        super().__init__()
        if not (t > 0 and growth > 0 and maximum >= t):
            raise ColocamError(f"SizeConstraint: needs 0 < t ≤ maximum and growth > 0, got {t=}, {growth=}, {maximum=}")
        self.start, self.growth, self.maximum = t, growth, maximum
        self.t = t

    def set_epoch(self, epoch: int) -> None:
        """Set t for an epoch (from 0); depends on the epoch alone, so a resumed run continues where it was."""
        self.t = min(self.start * self.growth**epoch, self.maximum)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (B, H, W) foreground probability -> scalar."""
        require_finite_on_cpu("SizeConstraint", maps=maps)
        s = maps if maps.dtype == torch.float64 else maps.float()
        foreground = s.sum((1, 2))
        background = s[0].numel() - foreground
        barrier = extended_log_barrier(-foreground, self.t) + extended_log_barrier(-background, self.t)
        return barrier.mean() / 2
