"""The training loop of both stages: one page, interruptible after any step, and exact when resumed."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from colocam.config import Optimisation
from colocam.data.batches import BatchIndices
from colocam.errors import ColocamError, InterruptedRunError
from colocam.training.journal import Journal, Value
from colocam.training.optimiser import (
    RunningMean,
    learning_rate,
    make_sgd,
    momentum_tensors,
    restore_momentum,
    set_learning_rate,
)
from colocam.utils.checkpoint import load_checkpoint, save_checkpoint
from colocam.utils.interrupt import stop_requested
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import progress

SECONDS_BETWEEN_SAVES = 120.0


@dataclass(frozen=True, slots=True)
class Validation:
    """How good the weights are after an epoch.

    Attributes:
        scores: name of a kept checkpoint → score; the epoch with the highest score is kept under that name.
        values: numbers for the journal, and for whoever opens the checkpoint later (e.g. the threshold).
    """

    scores: dict[str, float]
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Task:
    """What a stage teaches.

    Attributes:
        phase: name in the journal, e.g. ``classifier``.
        module: whose weights learn and are saved.
        groups: parameters and their factor on the learning rate.
        settings: epochs, learning rate, …
        plan: epoch → the frames of its steps.
        load: (frames of a step, number of the step) → what the step reads, in host memory; runs ahead in a thread.
        terms: (frames of a step, what was loaded, number of the step, epoch) → the loss's terms by name; their sum is
            minimised.
        validate: measure the module as it is after an epoch.
    """

    phase: str
    module: nn.Module
    groups: list[tuple[list[nn.Parameter], float]]
    settings: Optimisation
    plan: Callable[[int], list[BatchIndices]]
    load: Callable[[BatchIndices, int], Tensors]
    terms: Callable[[BatchIndices, Tensors, int, int], dict[str, Tensor]]
    validate: Callable[[int], Validation]


def fit(task: Task, folder: Path, journal: Journal) -> None:
    """Train until the last epoch; continue from ``folder/last`` where an earlier run stopped.

    Leaves ``folder/last`` (everything needed to go on) and ``folder/<score>`` for each score of the validation.
    """
    optimiser = make_sgd(task.groups, task.settings)
    mean = RunningMean(task.module, task.settings.ema)
    state: dict[str, Any] = {"epoch": 0, "batch": 0, "step": 0, "best": {}, "journal": journal.length}
    if (saved := load_checkpoint(folder, "last")) is not None:
        tensors, state = saved
        task.module.load_state_dict(
            {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}
        )
        for name, tensor in mean.mean.items():
            tensor.copy_(tensors[f"mean.{name}"])
        restore_momentum(optimiser, tensors)
    if state["epoch"] == task.settings.epochs:
        journal.length = state["journal"]
        return
    journal.rewind(state["journal"])

    saved_at = time.monotonic()

    def save() -> None:
        nonlocal saved_at
        state["journal"] = journal.flush()
        weights = {f"weights.{k}": v for k, v in task.module.state_dict().items()}
        averages = {f"mean.{k}": v for k, v in mean.mean.items()}
        save_checkpoint(folder, "last", weights | averages | momentum_tensors(optimiser), state)
        saved_at = time.monotonic()
        if stop_requested() and state["epoch"] < task.settings.epochs:
            raise InterruptedRunError(f"stopped in {task.phase} after step {state['step']}")

    epochs, steps = task.settings.epochs, len(task.plan(0))
    device = next(task.module.parameters()).device
    with progress(task.phase, epochs * steps, unit="steps", done=state["step"]) as advance:
        while state["epoch"] < epochs:
            epoch: int = state["epoch"]
            task.module.train()
            ahead = enumerate(task.plan(epoch)[state["batch"] :], start=state["step"])
            for step, indices, tensors in prefetch(ahead, task.load, device):
                rate = learning_rate(task.settings, step, steps)
                set_learning_rate(optimiser, rate)
                terms = sgd_step(task, optimiser, partial(task.terms, indices, tensors, step, epoch))
                mean.update(task.module, step)
                journal.add(task.phase, "train", epoch, step, lr=rate, **terms)
                state["step"] += 1
                state["batch"] += 1
                advance(note=f"epoch {epoch + 1}/{epochs}")
                if stop_requested() or time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES:
                    save()
            with averaged(task.module, mean):
                _validate(task, folder, journal, state)
            state |= {"epoch": epoch + 1, "batch": 0}
            save()


def sgd_step(task: Task, optimiser: torch.optim.SGD, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """One SGD step; a loss that is not finite contributes no gradient. Returns the detached terms and their sum."""
    optimiser.zero_grad(set_to_none=True)
    terms = compute()
    loss = torch.stack(list(terms.values())).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    broken = ~torch.isfinite(loss.detach())
    for parameters, _ in task.groups:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.masked_fill_(broken, 0.0)
    optimiser.step()
    return {"loss": loss.detach(), **{name: term.detach() for name, term in terms.items()}}


def _validate(task: Task, folder: Path, journal: Journal, state: dict[str, Any]) -> None:
    """Measure the weights and keep them under each score that they improve."""
    task.module.eval()
    result = task.validate(state["epoch"])
    if not all(map(math.isfinite, result.scores.values())):
        raise ColocamError(f"{task.phase} diverged in epoch {state['epoch'] + 1}: lower its lr ({task.settings.lr})")
    journal.add(task.phase, "val", state["epoch"], state["step"], **result.scores, **result.values)
    for name, score in result.scores.items():
        if name not in state["best"] or score > state["best"][name]:
            state["best"][name] = score
            kept = {"epoch": state["epoch"], "step": state["step"], "score": score, **result.values}
            save_checkpoint(folder, name, task.module.state_dict(), kept)


@contextmanager
def averaged(module: nn.Module, mean: RunningMean) -> Iterator[None]:
    """Within this block the module carries the running mean of its weights."""
    if mean.decay == 0:
        yield
        return
    own = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    module.load_state_dict(mean.mean)
    try:
        yield
    finally:
        module.load_state_dict(own)
