"""Loss terms of a training step: seeds (eq. 1), size (eq. 3), projection, and all terms by name, as stage 2 sums them.

A term is a function of the tensors of one step that returns a scalar. From Python, pass it to training:

>>> import torch
>>> from colocam.losses import LOSSES, Loss, StepTensors, Term
>>> class Entropy(torch.nn.Module):
...     def forward(self, step: StepTensors) -> torch.Tensor:
...         return torch.special.entr(step.maps).mean()
>>> term = Term("entropy", 0.1, Entropy())     # train(..., terms=[term])

To select it by name in a configuration file (``localizer.losses.extra: {entropy: 0.1}``), register it:

>>> LOSSES["entropy"] = Loss("Entropy of the maps", lambda settings: Entropy())
>>> del LOSSES["entropy"]
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from colocam.errors import ColocamError
from colocam.losses.pairwise import CoLocLoss, CRFLoss
from colocam.utils.extensions import REGISTRIES
from colocam.utils.tensors import require_finite

if TYPE_CHECKING:
    from colocam.config import Losses


IGNORE = 255


class PartialCrossEntropy(nn.Module):
    """Eq. 1: mean of -(1 - Y) log S⁰ - Y log S¹ over the labeled pixels of the batch; 0 if no pixel is labeled.

    >>> loss = PartialCrossEntropy()
    >>> logits = torch.randn(1, 2, 8, 8, requires_grad=True)
    >>> labels = torch.full((1, 8, 8), 255)        # 255: unlabeled
    >>> labels[0, 0, 0], labels[0, 4, 4] = 0, 1    # one background and one foreground seed
    >>> loss(logits, labels).backward()
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Logits (B, 2, H, W), labels (B, H, W) int64 (0 background, 1 foreground, 255 unlabeled) → scalar."""
        require_finite("PartialCrossEntropy", logits=logits)
        if labels.is_cpu and not bool(((labels == 0) | (labels == 1) | (labels == IGNORE)).all()):
            raise ColocamError(
                f"PartialCrossEntropy: labels must be 0 (background), 1 (foreground) or {IGNORE} (unlabeled), "
                f"got {sorted(set(labels.flatten().tolist()) - {0, 1, IGNORE})[:4]}"
            )
        wide = logits if logits.dtype == torch.float64 else logits.float()
        total = functional.cross_entropy(wide, labels, ignore_index=IGNORE, reduction="sum")
        return total / (labels != IGNORE).sum().clamp(min=1)


def extended_log_barrier(f: Tensor, t: float) -> Tensor:
    """Penalty ψ_t(f) for the constraint f < 0, finite everywhere.

    ψ_t(f) = -log(-f) / t for f ≤ -1/t², and its tangent t·f - log(1/t²) / t + 1/t beyond.
    """
    edge = -1 / t**2
    inside = -torch.log(-f.clamp(max=edge)) / t
    outside = t * f - math.log(-edge) / t + 1 / t
    return torch.where(f <= edge, inside, outside)


class SizeConstraint(nn.Module):
    """Eq. 3, neither foreground nor background may vanish.

    Mean over frames of ½ [ψ_t(-Σ_p S⁰_p) + ψ_t(-Σ_p S¹_p)], S⁰ = 1 - S¹, areas in pixels.

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


class ProjectionLoss(nn.Module):
    """Projection of a map onto the sides of a box (BoxInst, Tian et al., 2021).

    Mean over frames with a box of ½ Σ_axis (1 − 2 Σ p t / (Σ p² + Σ t²)); 0 if no frame has one.

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
        s = maps if maps.dtype == torch.float64 else maps.float()
        t = inside.to(maps.dtype)
        each = sum((_dice(s.amax(axis), t.amax(axis).to(s.dtype)) for axis in (1, 2)), start=s.new_zeros(len(s)))
        counted = inside.flatten(1).any(1).to(s.dtype)
        return (each * counted).sum() / 2 / counted.sum().clamp(min=1)


def _dice(p: Tensor, t: Tensor) -> Tensor:
    """(B,) 1 − 2 Σ p t / (Σ p² + Σ t²) of (B, N) each."""
    return 1 - 2 * (p * t).sum(1) / (p.square().sum(1) + t.square().sum(1)).clamp(min=1e-6)


class StepTensors(NamedTuple):
    """What a loss term can use: the B frames of one training step, on the training device.

    Attributes:
        frames: (B, 3, H, W) RGB, float, 0–255, without gradient.
        maps: (B, H, W) foreground probability S¹ in 0–1, with gradient.
        logits: (B, 2, H, W) background and foreground logits of the decoder, with gradient.
        labels: (B, H, W) int64 pixel seeds: 0 background, 1 foreground, 255 unlabeled.
        sequences: (B,) int64 index of the sequence of each frame, from 0.
        sequence_count: number of sequences in the batch.
        epoch: from 0.
    """

    frames: Tensor
    maps: Tensor
    logits: Tensor
    labels: Tensor
    sequences: Tensor
    sequence_count: int
    epoch: int


LossFunction = Callable[[StepTensors], Tensor]


def frame_count(step: StepTensors) -> Tensor:
    """Number of frames, a scalar."""
    return torch.tensor(len(step.maps), device=step.maps.device)


def labeled_pixels(step: StepTensors) -> Tensor:
    """Number of labeled pixels, a scalar."""
    return (step.labels != IGNORE).sum()


def joint_sequences(step: StepTensors) -> Tensor:
    """Number of sequences of at least two frames, a scalar."""
    return (step.sequences.bincount(minlength=step.sequence_count) >= 2).sum()


class Term(NamedTuple):
    """One summand of the training loss.

    Attributes:
        name: what progress and reports print.
        weight: λ; the sum adds weight · module(step).
        module: maps the tensors of a step to a scalar; an ``nn.Module`` works.
        mean_over: number of values that ``module`` is the mean over. Where several processes share a step, it weights
            the means of the processes.
    """

    name: str
    weight: float
    module: LossFunction
    mean_over: LossFunction = frame_count


class Loss(NamedTuple):
    """A registered loss.

    Attributes:
        title: what reports and help print.
        make: builds the loss function from the section ``localizer.losses`` of the configuration.
        mean_over: see :class:`Term`.
    """

    title: str
    make: "Callable[[Losses], LossFunction]"
    mean_over: LossFunction = frame_count


def _seeds(_: "Losses") -> LossFunction:
    loss = PartialCrossEntropy()
    return lambda step: loss(step.logits, step.labels)


def _crf(settings: "Losses") -> LossFunction:
    loss = CRFLoss(settings.sigma_rgb, settings.sigma_xy)
    return lambda step: loss(step.frames, step.maps)


def _size(settings: "Losses") -> LossFunction:
    loss = SizeConstraint(settings.barrier, settings.barrier_growth, settings.barrier_max)
    return lambda step: loss(step.maps, step.epoch)


def _coloc(settings: "Losses") -> LossFunction:
    loss = CoLocLoss(settings.sigma_rgb, weighting=settings.weighting, divisor=settings.divisor)
    return lambda step: loss(step.frames, step.maps, step.sequences, step.sequence_count)


LOSSES: dict[str, Loss] = {
    "seeds": Loss("Seeds (partial cross-entropy)", _seeds, labeled_pixels),
    "crf": Loss("CRF", _crf),
    "size": Loss("Size constraint", _size),
    "coloc": Loss("Color co-localization", _coloc, joint_sequences),
}
"""The terms of the paper by name: eq. 1, 2, 3 and 4. Add your own before training to select it by name."""
REGISTRIES["colocam.losses.LOSSES"] = LOSSES
