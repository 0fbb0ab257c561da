"""The training loop of both stages: it can be stopped after any step, and a resumed run gives the same weights."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt
from torch import Tensor, nn

from colocam.config import Optimisation
from colocam.data.batches import BatchIndices
from colocam.errors import ColocamError, InterruptedRunError
from colocam.maps.mapper import Mapper
from colocam.training.distributed import (
    alone,
    any_of,
    rank,
    require_same,
    sum_gradients,
    sum_scalars,
    synchronise_batch_norms,
    world,
)
from colocam.training.journal import Journal, SkippedSteps, Value
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import progress, say, stop_requested
from colocam.utils.tensors import explain_damage, load_checkpoint, save_checkpoint

SECONDS_BETWEEN_SAVES = 120.0
AfterEpoch = Callable[[str, int, Mapper], None]
"""Called with the phase, the epoch (from 0), and what computes maps with its weights."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of measuring the weights after an epoch.

    Attributes:
        scores: name of a checkpoint → score; the weights of the epoch with the highest score are kept under that name.
        values: further numbers for the journal and the checkpoint, e.g. the threshold.
    """

    scores: dict[str, float]
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Task:
    """What one stage trains.

    Attributes:
        phase: name in the journal, e.g. ``classifier``.
        module: its weights are trained and saved.
        groups: parameters, and their factor on the learning rate.
        settings: epochs, learning rate and so on.
        plan: epoch → the frames of each of its steps.
        load: (frames of a step, index of the step) → tensors in host memory; runs ahead in a thread.
        terms: (frames of a step, the loaded tensors, index of the step, epoch) → the weighted loss terms by name; their
            sum is minimised.
        validate: epoch → how good the weights are.
        mapper: what computes maps with the present weights; None: nothing.
    """

    phase: str
    module: nn.Module
    groups: list[tuple[list[nn.Parameter], float]]
    settings: Optimisation
    plan: Callable[[int], list[BatchIndices]]
    load: Callable[[BatchIndices, int], Tensors]
    terms: Callable[[BatchIndices, Tensors, int, int], dict[str, Tensor]]
    validate: Callable[[int], Validation]
    mapper: Callable[[], Mapper] | None = None


class _State(BaseModel):
    """The progress of a training, as a checkpoint keeps it."""

    model_config = ConfigDict(strict=True)

    epoch: NonNegativeInt
    batch: NonNegativeInt
    step: NonNegativeInt
    best: dict[str, float]
    journal: NonNegativeInt
    skipped: SkippedSteps = Field(default_factory=SkippedSteps)


def fit(task: Task, folder: Path, journal: Journal, after_epoch: AfterEpoch | None = None) -> None:
    """Train until the last epoch, from the checkpoint ``folder/last`` if there is one.

    Writes ``folder/last`` (everything needed to continue) and ``folder/<score>`` for each score of the validation;
    then ``after_epoch`` is called in the first process.
    A step whose loss is NaN or infinite contributes no gradient; such steps are counted, reported after each epoch,
    and stop the run if they persist (:class:`colocam.training.journal.SkippedSteps`).
    """
    optimiser = make_sgd(task.groups, task.settings)
    begin = _State(epoch=0, batch=0, step=0, best={}, journal=journal.length)
    state = _restored(task, optimiser, folder) or begin
    require_same(f"checkpoint of {task.phase}", state.step)
    if state.epoch == task.settings.epochs:
        journal.length = state.journal
        return
    journal.rewind(state.journal)
    epochs, steps = task.settings.epochs, len(_plan(task, 0))
    if state.step:
        say(f"{task.phase}: continuing after step {state.step} of {epochs * steps}")
    synchronise_batch_norms(task.module)
    advice = f"lower its lr ({task.settings.lr}), or check the loss terms and the frames"
    saved_at = time.monotonic()

    def save(*, stop: bool) -> None:
        nonlocal saved_at
        state.journal = journal.flush()
        state.skipped.check(task.phase, state.epoch, steps, advice)
        weights = {f"weights.{k}": v for k, v in task.module.state_dict().items()}
        alone(lambda: save_checkpoint(folder, "last", weights | momentum_tensors(optimiser), state.model_dump()))
        saved_at = time.monotonic()
        if stop and state.epoch < epochs:
            raise InterruptedRunError(f"stopped in {task.phase} after step {state.step}")

    device = next(task.module.parameters()).device
    with progress(task.phase, epochs * steps, unit="steps", done=state.step) as advance:
        for epoch in range(state.epoch, epochs):
            task.module.train()
            ahead = enumerate(_plan(task, epoch)[state.batch :], start=state.step)
            for step, indices, tensors in prefetch(ahead, task.load, device):
                rate = learning_rate(task.settings, step, steps)
                set_learning_rate(optimiser, rate)
                terms = sgd_step(task, optimiser, partial(task.terms, indices, tensors, step, epoch))
                state.skipped.add(terms)
                journal.add(task.phase, "train", epoch, step, lr=rate, **terms)
                state.step += 1
                state.batch += 1
                advance(note=f"epoch {epoch + 1}/{epochs}")
                stop, due = any_of(stop_requested(), time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES)
                if stop or due:
                    save(stop=stop)
            journal.flush()  # an error leaves the losses of all steps to look at
            state.skipped.check(task.phase, epoch, steps, advice)
            alone(partial(_validate, task, folder, journal, state))
            state.epoch, state.batch, state.skipped = epoch + 1, 0, SkippedSteps()
            save(stop=any_of(stop_requested())[0])
            if after_epoch is not None and task.mapper is not None:
                alone(partial(after_epoch, task.phase, epoch, task.mapper()))


def _restored(task: Task, optimiser: torch.optim.SGD, folder: Path) -> _State | None:
    """Restore the weights and the momentum of the last checkpoint; return its state, or None if there is none."""
    if (saved := load_checkpoint(folder, "last")) is None:
        return None
    tensors, state = saved
    weights = {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}
    with explain_damage(folder, "last"):
        task.module.load_state_dict(weights)
        restore_momentum(optimiser, tensors)
        return _State.model_validate(state)


def _plan(task: Task, epoch: int) -> list[BatchIndices]:
    """The frames of each step that this process computes."""
    try:
        return [indices.share(rank(), world()) for indices in task.plan(epoch)]
    except ValueError as error:
        advice = f"start fewer processes, or raise the batch ({task.settings.batch})"
        raise ColocamError(f"{task.phase}: {error}, one for each process: {advice}") from error


def sgd_step(task: Task, optimiser: torch.optim.SGD, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Take one SGD step; a loss that is not finite has no gradient. Returns the detached terms and their sum.

    Where several processes share the step, ``compute`` gives the parts of this one, and the result is that of all.
    """
    optimiser.zero_grad(set_to_none=True)
    terms = compute()
    loss = torch.stack(list(terms.values())).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    parameters = [parameter for group, _ in task.groups for parameter in group]
    sum_gradients(parameters)
    total = sum_scalars({"loss": loss.detach(), **{name: term.detach() for name, term in terms.items()}})
    broken = ~torch.isfinite(total["loss"])
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.masked_fill_(broken, 0.0)
    optimiser.step()
    return total


def _validate(task: Task, folder: Path, journal: Journal, state: _State) -> None:
    """Measure the weights, and save them under each score that they improve."""
    if skipped := state.skipped.count():
        say(f"{task.phase}, epoch {state.epoch + 1}: {state.skipped} steps, which were skipped")
    task.module.eval()
    result = task.validate(state.epoch)
    if not all(map(math.isfinite, result.scores.values())):
        raise ColocamError(f"{task.phase} diverged in epoch {state.epoch + 1}: lower its lr ({task.settings.lr})")
    values = {**result.scores, **result.values} | ({"skipped": skipped} if skipped else {})
    journal.add(task.phase, "val", state.epoch, state.step, **values)
    for name, score in result.scores.items():
        if name not in state.best or score > state.best[name]:
            state.best[name] = score
            kept = {"epoch": state.epoch, "step": state.step, "score": score, **result.values}
            save_checkpoint(folder, name, task.module.state_dict(), kept)


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
