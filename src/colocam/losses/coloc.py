"""Co-localisation, eq. 4 and its adaptive weight, eq. 5: one colour in all frames of a sequence belongs together."""

from typing import Literal

from torch import Tensor

from colocam.affinity import engine
from colocam.errors import ColocamError
from colocam.losses.pairwise import energies, on_kernels
from colocam.losses.sequences import SequenceLoss

Weighting = Literal["adaptive", "constant"]
Divisor = Literal["affinity", "energy"]


class CoLocLoss(SequenceLoss):
    """Mean over sequences of at least two frames of R_c = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ²).

    S holds the maps of all frames of a sequence. With ``weighting="adaptive"`` each sequence's R_c is divided by a
    constant (no gradient flows through it), so that λ_c depends little on the number of frames.

    Args:
        sigma: width in colour levels.
        weighting: ``adaptive`` divides, ``constant`` does not.
        divisor: ``affinity`` is Σ_r S_rᵀ W S_r, what the published code divides by: it never vanishes. ``energy`` is
            R_c itself, what the paper's text says: the loss is then 1 and its gradient grows as maps align with colours
            (the divisor is kept above 1e-6 of 1ᵀW1, so that it stays finite).
        tol: relative error of the products.
    """

    def __init__(
        self, sigma: float = 15.0, weighting: Weighting = "adaptive", divisor: Divisor = "affinity", tol: float = 5e-3
    ) -> None:
        if weighting not in {"adaptive", "constant"} or divisor not in {"affinity", "energy"}:
            raise ColocamError(
                "CoLocLoss: weighting is 'adaptive' or 'constant' and divisor 'affinity' or 'energy', "
                f"got {weighting!r} and {divisor!r}"
            )
        gaussian = engine.Gaussian(float(sigma), float(tol))
        super().__init__(_weighted_energy, gaussian, weighting == "adaptive", divisor == "energy")


def _weighted_energy(
    s: Tensor, rgb: Tensor, group: Tensor, gaussian: engine.Gaussian, groups: int, adaptive: bool, by_energy: bool  # noqa: FBT001
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Weighted sum of R_c over sequences and its gradient: s (F, P), rgb (F, 3, P), group (F,) -> scalar, (F, P)."""
    totals, product = engine.energy(rgb, s, group, groups, gaussian)
    if on_kernels(s):
        from colocam.losses import fused  # noqa: PLC0415  Triton is not everywhere

        value, weights = fused.weigh(totals, group, adaptive=adaptive, by_energy=by_energy)
        return value, fused.scale_(product.contiguous(), group, weights)
    value, weights = weigh(totals, group, adaptive=adaptive, by_energy=by_energy)
    return value, (-4 * weights.to(s.dtype))[group, None] * product


def weigh(totals: Tensor, group: Tensor, *, adaptive: bool, by_energy: bool) -> tuple[Tensor, Tensor]:
    """The loss and what each sequence's R_c is multiplied by.

    Args:
        totals: (groups, 2) the sums 1ᵀW1 and DᵀWD of each sequence.
        group: (F,) sequence of each frame.
        adaptive: divide by |R_c|, or by |1ᵀW1 - R_c| = Σ_r S_rᵀ W S_r.
        by_energy: which of the two.

    Returns:
        Scalar, and (groups,).
    """
    mass, energy = totals[:, 0], energies(totals)
    counted = (group.bincount(minlength=len(totals)) >= 2).to(totals.dtype)
    weight = counted / counted.sum().clamp(min=1)
    if adaptive:
        divisor = energy if by_energy else mass - energy
        weight = weight / divisor.abs().maximum(1e-6 * mass).clamp(min=1e-300)
    return (weight * energy).sum(), weight
