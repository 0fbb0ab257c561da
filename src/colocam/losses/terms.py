"""Loss terms of a training step by name: what stage 2 sums (eq. 5), and how to add a term of your own.

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

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from colocam.losses.coloc import CoLocLoss
from colocam.losses.crf import CRFLoss
from colocam.losses.partial_cross_entropy import IGNORE, PartialCrossEntropy
from colocam.losses.size import SizeConstraint

if TYPE_CHECKING:
    from colocam.config import Losses


class StepTensors(NamedTuple):
    """What a loss term can use: the B frames of one training step, on the training device.

    Attributes:
        frames: (B, 3, H, W) RGB, float, 0–255, without gradient.
        maps: (B, H, W) foreground probability S¹ in 0–1, with gradient.
        logits: (B, 2, H, W) background and foreground logits of the decoder, with gradient.
        labels: (B, H, W) int64 pixel seeds: 0 background, 1 foreground, 255 unlabelled.
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
CountFunction = Callable[[StepTensors], Tensor]


def frame_count(step: StepTensors) -> Tensor:
    """Number of frames, a scalar."""
    return torch.tensor(len(step.maps), device=step.maps.device)


def labelled_pixels(step: StepTensors) -> Tensor:
    """Number of labelled pixels, a scalar."""
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
    mean_over: CountFunction = frame_count


class Loss(NamedTuple):
    """A registered loss.

    Attributes:
        title: what reports and help print.
        make: builds the loss function from the section ``localizer.losses`` of the configuration.
        mean_over: see :class:`Term`.
    """

    title: str
    make: "Callable[[Losses], LossFunction]"
    mean_over: CountFunction = frame_count


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
    "seeds": Loss("Seeds (partial cross-entropy)", _seeds, labelled_pixels),
    "crf": Loss("CRF", _crf),
    "size": Loss("Size constraint", _size),
    "coloc": Loss("Colour co-localisation", _coloc, joint_sequences),
}
"""The terms of the paper by name: eq. 1, 2, 3 and 4. Add your own before training to select it by name."""
