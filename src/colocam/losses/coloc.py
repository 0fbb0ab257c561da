"""Co-localisation (eq. 4) with its adaptive weight (eq. 5): one colour should get one label in all frames."""

from typing import Literal

import torch
from torch import Tensor, nn

from colocam.affinity import engine
from colocam.errors import ColocamError
from colocam.losses.pairwise import Weights, weighted_energy


class CoLocLoss(nn.Module):
    """Mean over sequences of at least two frames of R_c(S) = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ²).

    S holds the maps of all frames of a sequence, r runs over background and foreground, S⁰ = 1 - S¹; c are colours.
    With ``weighting="adaptive"`` (eq. 5) the R_c of each sequence is divided by a constant without gradient, so that
    λ_c depends little on the number of frames.

    >>> loss = CoLocLoss(sigma=15.0)
    >>> frames = torch.randint(0, 256, (4, 3, 32, 32))
    >>> maps = torch.rand(4, 32, 32, requires_grad=True)
    >>> sequences = torch.tensor([0, 0, 1, 1])     # two sequences of two frames
    >>> loss(frames, maps, sequences, 2).backward()

    Args:
        sigma: width of the Gaussian in colour levels.
        weighting: ``adaptive`` divides R_c, ``constant`` does not.
        divisor: ``affinity`` divides by Σ_r S_rᵀ W S_r, as the published code does; it never vanishes. ``energy``
            divides by R_c itself, as the paper's text says: the loss is then 1, and its gradient grows as the maps
            align with the colours (the divisor is kept above 1e-6 of 1ᵀW1).
        tol: relative error of the gradient, and of the value.
    """

    def __init__(
        self,
        sigma: float = 15.0,
        weighting: Literal["adaptive", "constant"] = "adaptive",
        divisor: Literal["affinity", "energy"] = "affinity",
        tol: float = 9e-3,
    ) -> None:
        super().__init__()
        if weighting not in {"adaptive", "constant"}:
            raise ColocamError(f"CoLocLoss: weighting must be 'adaptive' or 'constant', got {weighting!r}")
        if divisor not in {"affinity", "energy"}:
            raise ColocamError(f"CoLocLoss: divisor must be 'affinity' or 'energy', got {divisor!r}")
        self.gaussian = engine.Gaussian(float(sigma), float(tol))
        self.weights = Weights(least=2, divisor=divisor if weighting == "adaptive" else "none")

    def forward(self, frames: Tensor, maps: Tensor, sequences: Tensor, count: int | None = None) -> Tensor:
        """Scalar; 0 if no sequence has two frames.

        Args:
            frames: (B, 3, H, W) in 0–255.
            maps: (B, H, W) foreground probability.
            sequences: (B,) integer index of the sequence of each frame, 0 … count-1, in any order.
            count: number of sequences; if None it is read from ``sequences``, which on CUDA makes the host wait.
        """
        if sequences.shape != maps.shape[:1]:
            raise ColocamError(
                f"CoLocLoss: sequences must have one index for each of {len(maps)} maps, "
                f"got shape {tuple(sequences.shape)}"
            )
        groups = int(sequences.max()) + 1 if count is None else count
        group = sequences.to(maps.device, torch.int64)
        return weighted_energy("CoLocLoss", frames, maps, group, groups, self.gaussian, self.weights)
