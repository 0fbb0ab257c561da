"""The pairwise energy R(S) = Σ_r S_rᵀ W (1 - S_r) of eq. 2 and eq. 4, as a differentiable weighted sum over groups.

With S⁰ = 1 - S¹, D = S¹ - ½ and symmetric W, R = ½·1ᵀW1 - 2·DᵀWD and ∂R/∂S¹ = -4·WD: one product W·D gives both.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from colocam.errors import ColocamError
from colocam.losses.affinity import engine
from colocam.utils.tensors import require_finite

Divisor = Literal["none", "affinity", "energy"]


class _WeightedEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, frames: Tensor, group: Tensor, *how: Any) -> Tensor:  # noqa: ANN401
        groups, gaussian, least, divisor = how
        with torch.autocast(maps.device.type, enabled=False):
            s = (maps if maps.dtype == torch.float64 else maps.float()).flatten(1)
            totals, product = engine.energy(frames.flatten(2), s, group, groups, gaussian)
            value, each = weigh(totals, group, least, divisor)
            # in at least float32, so that small weights λ do not underflow
            ctx.save_for_backward(((-4 * each.to(s.dtype))[group, None] * product).view(maps.shape))
        ctx.dtype = maps.dtype
        return value.to(s.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return (outer * gradient).to(ctx.dtype), *[None] * 6


def weighted_energy(
    name: str,
    frames: Tensor,
    maps: Tensor,
    group: Tensor,
    groups: int,
    gaussian: engine.Gaussian,
    least: int = 1,
    divisor: Divisor = "none",
) -> Tensor:
    """Σ_g w_g R_g over groups of frames, differentiable once with respect to the maps; see :func:`weigh` for w.

    Args:
        name: of the loss, for error messages.
        frames: (B, 3, H, W) in 0–255.
        maps: S¹, (B, H, W).
        group: (B,) int64 index of the group of each frame, 0 … groups-1.
        groups: number of groups.
        gaussian: the affinity W.
        least: frames that a group needs to be counted.
        divisor: of each group.

    Returns:
        Scalar, float32, or float64 if the maps are.
    """
    shape = frames.shape
    if len(shape) != 4 or shape[1] != 3 or maps.shape != (shape[0], shape[2], shape[3]):
        raise ColocamError(
            f"{name}: needs frames (B, 3, H, W) and maps (B, H, W), got {tuple(shape)} and {tuple(maps.shape)}"
        )
    if frames.requires_grad:
        raise ColocamError(f"{name}: frames must not require a gradient; pass frames.detach()")
    require_finite(name, frames=frames, maps=maps)
    value: Tensor = _WeightedEnergy.apply(maps, frames, group, groups, gaussian, least, divisor)
    return value


def weigh(totals: Tensor, group: Tensor, least: int, divisor: Divisor) -> tuple[Tensor, Tensor]:
    """Σ_g w_g R_g (scalar) and w (groups,) from the sums 1ᵀW1 and DᵀWD of each group, totals (groups, 2) float64.

    w_g = 1 / (number of counted groups · divisor of g), and 0 for groups of fewer than ``least`` frames. The divisor
    ``none`` is 1, ``affinity`` is Σ_r S_rᵀ W S_r = 1ᵀW1 - R_g, ``energy`` is R_g; the latter two are kept above 1e-6 of
    1ᵀW1. No gradient flows through w.
    """
    mass, energy = totals[:, 0], 0.5 * totals[:, 0] - 2 * totals[:, 1]
    sizes = torch.zeros_like(mass).index_add_(0, group, torch.ones_like(group, dtype=mass.dtype))  # no host waits
    counted = (sizes >= least).to(totals.dtype)
    each = counted / counted.sum().clamp(min=1)
    if divisor != "none":
        by = energy if divisor == "energy" else mass - energy
        each = each / by.abs().maximum(1e-6 * mass).clamp(min=1e-300)
    return (each * energy).sum(), each


class CoLocLoss(nn.Module):
    """Eq. 4, one color should get one label in all frames.

    Mean over sequences of at least two frames of R_c(S) = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ²).

    S holds the maps of all frames of a sequence, r runs over background and foreground, S⁰ = 1 - S¹; c are colors.
    With ``weighting="adaptive"`` (eq. 5) the R_c of each sequence is divided by a constant without gradient, so that
    λ_c depends little on the number of frames.

    >>> loss = CoLocLoss(sigma=15.0)
    >>> frames = torch.randint(0, 256, (4, 3, 32, 32))
    >>> maps = torch.rand(4, 32, 32, requires_grad=True)
    >>> sequences = torch.tensor([0, 0, 1, 1])     # two sequences of two frames
    >>> loss(frames, maps, sequences, 2).backward()

    Args:
        sigma: width of the Gaussian in color levels.
        weighting: ``adaptive`` divides R_c, ``constant`` does not.
        divisor: ``affinity`` divides by Σ_r S_rᵀ W S_r, as the published code does; it never vanishes. ``energy``
            divides by R_c itself, as the paper's text says: the loss is then 1, and its gradient grows as the maps
            align with the colors (the divisor is kept above 1e-6 of 1ᵀW1).
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
        self.divisor: Divisor = divisor if weighting == "adaptive" else "none"

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
        return weighted_energy("CoLocLoss", frames, maps, group, groups, self.gaussian, 2, self.divisor)


class CRFLoss(nn.Module):
    """Eq. 2, nearby pixels of similar color in one frame should get the same label.

    Mean over frames of R(S) = Σ_r S_rᵀ W (1 - S_r), W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²).

    r runs over background and foreground, S⁰ = 1 - S¹; c are colors, p positions. The published weight λ = 2e-9 was
    tuned with a permutohedral lattice that finds about 0.6 of this exact sum: 1.2e-9 gives the same balance here.

    >>> loss = CRFLoss(sigma_rgb=15.0, sigma_xy=100.0)
    >>> frames = torch.randint(0, 256, (2, 3, 32, 32))
    >>> maps = torch.rand(2, 32, 32, requires_grad=True)
    >>> loss(frames, maps).backward()

    Args:
        sigma_rgb: width of the Gaussian in color levels.
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
        return weighted_energy("CRFLoss", frames, maps, each_frame, len(maps), gaussian)
