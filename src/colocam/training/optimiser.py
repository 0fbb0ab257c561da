"""SGD, its learning rate over the run, and the running mean of the weights; all of it saved and restored by name."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from colocam.config import Optimisation


def learning_rate(settings: Optimisation, step: int, steps_per_epoch: int) -> float:
    """Learning rate of ``step`` (from 0): constant with decay every few epochs, or one warm-up epoch and a cosine."""
    if settings.schedule == "step":
        return settings.lr * settings.decay ** (step // steps_per_epoch // settings.decay_every)
    total = settings.epochs * steps_per_epoch
    warmup = min(steps_per_epoch, total // 10 + 1)
    if step < warmup:
        return settings.lr * (step + 1) / warmup
    return settings.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))


def make_sgd(groups: Iterable[tuple[list[nn.Parameter], float]], settings: Optimisation) -> torch.optim.SGD:
    """Nesterov SGD over groups of parameters, each with a factor on the learning rate."""
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
    """Give each group the rate times its factor."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group["factor"]


def momentum_tensors(optimiser: torch.optim.SGD) -> dict[str, Tensor]:
    """The optimiser's state under names that do not depend on torch's own layout."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    buffers = ((i, optimiser.state[p].get("momentum_buffer")) for i, p in enumerate(parameters))
    return {f"momentum.{i:04d}": buffer for i, buffer in buffers if buffer is not None}


def restore_momentum(optimiser: torch.optim.SGD, tensors: dict[str, Tensor]) -> None:
    """Inverse of :func:`momentum_tensors`."""
    for i, p in enumerate(p for group in optimiser.param_groups for p in group["params"]):
        if (buffer := tensors.get(f"momentum.{i:04d}")) is not None:
            optimiser.state[p]["momentum_buffer"] = torch.empty_like(p).copy_(buffer)  # in the parameter's own layout


class RunningMean:
    """Exponential mean of a module's weights and buffers, steadier than the last step's; decay 0 keeps none.

    ``mean ← d·mean + (1 − d)·weights`` with ``d = min(decay, (1 + t) / (10 + t))``: the start is soon forgotten.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        kept = module.state_dict() if decay else {}
        self.mean = {name: tensor.detach().clone() for name, tensor in kept.items()}

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """Take the weights after ``step`` (from 0) into the mean."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, tensor in module.state_dict().items() if self.decay else ():
            if tensor.is_floating_point():
                self.mean[name].lerp_(tensor, 1 - decay)
            else:
                self.mean[name].copy_(tensor)
