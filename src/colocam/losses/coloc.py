"""Co-localisation, eq. 4 and its adaptive weight, eq. 5: one colour in all frames of a sequence belongs together."""

from typing import Literal

import torch
from torch import Tensor, nn

from colocam.affinity import color_product
from colocam.losses.energy import attach_gradient, energy_and_gradient
from colocam.losses.finite import require_finite_on_cpu

Weighting = Literal["adaptive", "constant"]
Divisor = Literal["affinity", "energy"]


class CoLocLoss(nn.Module):
    """Mean over sequences of at least two frames of R_c = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ²).

    S holds the maps of all frames of a sequence. With ``weighting="adaptive"`` each sequence's R_c is divided by a
    constant (no gradient flows through it), so that λ_c depends little on the number of frames.

    Args:
        sigma: width in colour levels.
        weighting: ``adaptive`` divides, ``constant`` does not.
        divisor: ``affinity`` is Σ_r S_rᵀ W S_r, what the published code divides by: it never vanishes. ``energy`` is
            R_c itself, what the paper's text says: the loss is then 1 and its gradient grows without bound as maps
            align with colours (the divisor is kept above 1e-6 of Σ W).
        tol: relative error of the products.
    """

    def __init__(
        self,
        sigma: float = 15.0,
        weighting: Weighting = "adaptive",
        divisor: Divisor = "affinity",
        tol: float = 5e-3,
    ) -> None:
        super().__init__()
        self.sigma, self.weighting, self.divisor, self.tol = sigma, weighting, divisor, tol

    def forward(self, frames: Tensor, maps: Tensor, sequences: Tensor) -> Tensor:
        """Scalar loss.

        Args:
            frames: (B, 3, H, W) in 0–255.
            maps: (B, H, W) foreground probability.
            sequences: (B,) int64 id of each frame's sequence, 0 … S-1, in any order. On the CPU, its maximum is known
                without waiting for the device.
        """
        require_finite_on_cpu("CoLocLoss", frames=frames, maps=maps)
        with torch.no_grad(), torch.autocast(maps.device.type, enabled=False):
            s = maps if maps.dtype == torch.float64 else maps.float()
            values = torch.stack([torch.ones_like(s), s], dim=-1).flatten(1, 2)
            colors = frames.flatten(2).transpose(1, 2)
            products = color_product(colors, values, self.sigma, self.tol, sequences=sequences[:, None])
            degree, smoothed = products.view(*s.shape, 2).unbind(-1)
            energy, gradient = energy_and_gradient(s, degree, smoothed)

            ids = sequences.to(s.device)
            total = energy.new_zeros(3, int(sequences.max()) + 1, dtype=torch.float64)
            total.index_add_(
                1,
                ids,
                torch.stack(
                    [t.sum((1, 2), dtype=torch.float64) for t in (energy, degree)]
                    + [torch.ones(len(s), dtype=torch.float64, device=s.device)]
                ),
            )
            weight = self._weights(*total)
            value = (weight * total[0]).sum().to(s.dtype)
            gradient *= weight[ids, None, None].to(s.dtype)
        return attach_gradient(maps, value, gradient)

    def _weights(self, energy: Tensor, mass: Tensor, frames: Tensor) -> Tensor:
        """What each sequence's R_c is multiplied by: (S,) energies, Σ W and numbers of frames -> (S,)."""
        counted = frames >= 2
        weight = counted / counted.sum().clamp(min=1)
        if self.weighting == "constant":
            return weight
        divisor = mass - energy if self.divisor == "affinity" else energy
        return weight / divisor.abs().maximum(1e-6 * mass).clamp(min=torch.finfo(torch.float64).tiny)
