"""Absolute size constraint (eq. 3): neither foreground nor background may vanish."""

import math

import torch
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.utils.tensors import require_finite


def extended_log_barrier(f: Tensor, t: float) -> Tensor:
    """Penalty ψ_t(f) for the constraint f < 0, finite everywhere.

    ψ_t(f) = -log(-f) / t for f ≤ -1/t², and its tangent t·f - log(1/t²) / t + 1/t beyond.
    """
    edge = -1 / t**2
    inside = -torch.log(-f.clamp(max=edge)) / t
    outside = t * f - math.log(-edge) / t + 1 / t
    return torch.where(f <= edge, inside, outside)


class SizeConstraint(nn.Module):
    """Mean over frames of ½ [ψ_t(-Σ_p S⁰_p) + ψ_t(-Σ_p S¹_p)], S⁰ = 1 - S¹, areas in pixels.

    ψ_t is :func:`extended_log_barrier`, with t = min(start · growthᵉᵖᵒᶜʰ, maximum).

    >>> loss = SizeConstraint()
    >>> maps = torch.full((2, 8, 8), 0.5, requires_grad=True)
    >>> loss(maps, epoch=3).backward()

    Args:
        t: sharpness of the barrier at epoch 0 (z in eq. 3).
        growth: factor of t per epoch.
        maximum: upper limit of t.
    """

    def __init__(self, t: float = 1.0, growth: float = 1.01, maximum: float = 10.0) -> None:
        super().__init__()
        if not (t > 0 and growth > 0 and maximum >= t):
            raise ColocamError(f"SizeConstraint: needs 0 < t ≤ maximum and growth > 0, got {t=}, {growth=}, {maximum=}")
        self.start, self.growth, self.maximum = t, growth, maximum

    def forward(self, maps: Tensor, epoch: int = 0) -> Tensor:
        """Maps (B, H, W) foreground probability, epoch from 0 → scalar."""
        require_finite("SizeConstraint", maps=maps)
        t = min(self.start * self.growth**epoch, self.maximum)
        s = maps if maps.dtype == torch.float64 else maps.float()
        foreground = s.sum((1, 2))
        background = s[0].numel() - foreground
        barrier = extended_log_barrier(-foreground, t) + extended_log_barrier(-background, t)
        return barrier.mean() / 2
