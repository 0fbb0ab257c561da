"""The colour term as a normalised cut: alike colours belong together, and no map is favoured for its size."""

import torch
from torch import Tensor

from colocam.affinity import engine
from colocam.losses.sequences import SequenceLoss


class CutLoss(SequenceLoss):
    """Mean over sequences of at least two frames of Σ_r S_rᵀ W (1 - S_r) / S_rᵀ W 1, W_ij = exp(-|c_i - c_j|² / 2σ²).

    Eq. 4 is smallest where a map is 0 or 1 everywhere; only the seeds hold it up, and λ_c must be found anew for every
    set of videos. Divided by its own association (Shi and Malik, PAMI 2000; as a loss, Tang et al., CVPR 2018) each
    side's cut is the same for all constant maps, and falls only as the map follows the colours: the loss lies in 0–1
    for maps that follow them, and needs no adaptive weight.

    Args:
        sigma: width in colour levels.
        tol: relative error of the products.
    """

    def __init__(self, sigma: float = 15.0, tol: float = 5e-3) -> None:
        super().__init__(_cut, engine.Gaussian(float(sigma), float(tol)))


def _cut(s: Tensor, rgb: Tensor, group: Tensor, gaussian: engine.Gaussian, groups: int) -> tuple[Tensor, Tensor]:
    """Value and gradient from one product with [1, S - ½]: s (F, P), rgb (F, 3, P), group (F,) -> scalar, (F, P)."""
    centred = torch.stack([torch.ones_like(s), s - 0.5], dim=1)
    mass, tilt = engine.product(rgb, centred, group, groups, gaussian).unbind(1)
    inner = (mass / 2 + tilt, mass / 2 - tilt)  # W S¹ and W S⁰

    def total(values: Tensor) -> Tensor:
        sums = torch.zeros(groups, dtype=torch.float64, device=s.device)
        return sums.index_add_(0, group, values.sum(1, dtype=torch.float64))

    counted = (total(torch.ones_like(s[:, :1])) >= 2).double()
    weight = counted / counted.sum().clamp(min=1)
    smallest = (1e-6 * total(mass)).clamp(min=1e-300)
    value, gradient = torch.zeros_like(smallest), torch.zeros_like(s)
    for side, product, sign in ((s, inner[0], 1), (1 - s, inner[1], -1)):
        association = total(side * mass).maximum(smallest)
        kept = total(side * product) / association
        value = value + 1 - kept
        scale = (sign * weight / association).to(s.dtype)[group, None]
        gradient = gradient + scale * (kept.to(s.dtype)[group, None] * mass - 2 * product)
    return (weight * value).sum(), gradient
