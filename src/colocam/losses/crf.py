"""Local consistency (eq. 2): nearby pixels of similar colour in one frame should get the same label."""

import torch
from torch import Tensor, nn

from colocam.affinity import engine
from colocam.losses.pairwise import Weights, weighted_energy


class CRFLoss(nn.Module):
    """Mean over frames of R(S) = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²).

    r runs over background and foreground, S⁰ = 1 - S¹; c are colours, p positions. The published weight λ = 2e-9 was
    tuned with a permutohedral lattice that finds about 0.6 of this exact sum: 1.2e-9 gives the same balance here.

    >>> loss = CRFLoss(sigma_rgb=15.0, sigma_xy=100.0)
    >>> frames = torch.randint(0, 256, (2, 3, 32, 32))
    >>> maps = torch.rand(2, 32, 32, requires_grad=True)
    >>> loss(frames, maps).backward()

    Args:
        sigma_rgb: width of the Gaussian in colour levels.
        sigma_xy: width of the Gaussian in pixels.
        tol: relative error of the gradient, and of the value.
    """

    def __init__(self, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2) -> None:
        super().__init__()
        self.sigma_rgb, self.sigma_xy, self.tol = float(sigma_rgb), float(sigma_xy), float(tol)

    def forward(self, frames: Tensor, maps: Tensor) -> Tensor:
        """Frames (B, 3, H, W) in 0–255, maps (B, H, W) foreground probability → scalar."""
        gaussian = engine.Gaussian(self.sigma_rgb, self.tol, self.sigma_xy, (maps.shape[-2], maps.shape[-1]))
        each_frame = torch.arange(len(maps), device=maps.device)
        return weighted_energy("CRFLoss", frames, maps, each_frame, len(maps), gaussian, Weights())
