"""Li's threshold: the two-level picture that is nearest to the maps in cross-entropy."""

import torch
from torch import Tensor


def li_of_histogram(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Level t whose two classes' means describe the levels with the least cross-entropy (Li and Lee, 1993).

    With m_a, m_b the summed levels and μ_a, μ_b the mean levels of the classes ``≤ t`` and ``> t`` this minimises
    ``−m_a·log μ_a − m_b·log μ_b``. Ratios count, where Otsu's threshold counts differences: a faint part of an
    object on a dark ground is object.

    Args:
        counts: (..., 256) pixels per level.

    Returns:
        levels (...) int64 and defined (...) bool; without two different levels undefined, and the level is then 0.
    """
    counts = counts.double()
    level = torch.arange(256, dtype=torch.float64, device=counts.device)
    below, mass_below = counts.cumsum(-1), (counts * level).cumsum(-1)
    above, mass_above = below[..., -1:] - below, mass_below[..., -1:] - mass_below

    def cost(mass: Tensor, number: Tensor) -> Tensor:
        return torch.where(mass > 0, -mass * torch.log((mass / number.clamp(min=1)).clamp(min=1e-300)), 0.0)

    split = (below > 0) & (above > 0)
    total = torch.where(split, cost(mass_below, below) + cost(mass_above, above), torch.inf)
    defined = split.any(-1)
    return torch.where(defined, total.argmin(-1), 0), defined
