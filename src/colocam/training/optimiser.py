"""SGD, its learning rate over the run, and its state as named tensors for checkpoints."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from colocam.config import Optimisation


def learning_rate(settings: Optimisation, step: int, steps_per_epoch: int) -> float:
    """Learning rate of ``step`` (from 0), by ``settings.schedule``.

    step: ``lr · decay^⌊epoch / decay_every⌋``. cosine: a linear warm-up over w steps (one epoch, at most a tenth of the
    run), then ``lr · ½ (1 + cos(π (step − w) / (steps − w)))``.
    """
    if settings.schedule == "step":
        return settings.lr * settings.decay ** (step // steps_per_epoch // settings.decay_every)
    total = settings.epochs * steps_per_epoch
    warmup = min(steps_per_epoch, total // 10 + 1)
    if step < warmup:
        return settings.lr * (step + 1) / warmup
    return settings.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))


def make_sgd(groups: Iterable[tuple[list[nn.Parameter], float]], settings: Optimisation) -> torch.optim.SGD:
    """SGD with Nesterov momentum over groups of parameters, each with a factor on the learning rate."""
    groups = list(groups)
    on_gpu = all(parameter.is_cuda for parameters, _ in groups for parameter in parameters)
    return torch.optim.SGD(
        [{"params": parameters, "factor": factor} for parameters, factor in groups],
        lr=settings.lr,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
        fused=True if on_gpu else None,  # one kernel for all parameters
    )


def set_learning_rate(optimiser: torch.optim.SGD, rate: float) -> None:
    """Set the learning rate of each group to ``rate`` times its factor."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group["factor"]


def momentum_tensors(optimiser: torch.optim.SGD) -> dict[str, Tensor]:
    """The momentum of each parameter, under names that do not depend on torch's own layout."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    buffers = ((i, optimiser.state[p].get("momentum_buffer")) for i, p in enumerate(parameters))
    return {f"momentum.{i:04d}": buffer for i, buffer in buffers if buffer is not None}


def restore_momentum(optimiser: torch.optim.SGD, tensors: dict[str, Tensor]) -> None:
    """Inverse of :func:`momentum_tensors`."""
    for i, p in enumerate(p for group in optimiser.param_groups for p in group["params"]):
        if (buffer := tensors.get(f"momentum.{i:04d}")) is not None:
            optimiser.state[p]["momentum_buffer"] = torch.empty_like(p).copy_(buffer)  # in the parameter's own layout
