"""The training loop of both stages: it can be stopped after any step, and a resumed run gives the same weights."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, NonNegativeInt
from torch import Tensor, nn

from colocam.config import Optimisation
from colocam.data.batches import BatchIndices
from colocam.errors import ColocamError, InterruptedRunError
from colocam.training.journal import Journal, Value
from colocam.training.optimiser import learning_rate, make_sgd, momentum_tensors, restore_momentum, set_learning_rate
from colocam.training.processes import alone, any_of, rank, require_same, world
from colocam.training.skipped import SkippedSteps
from colocam.training.sums import sum_gradients, sum_scalars
from colocam.training.synchronised_norms import synchronise_batch_norms
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import progress, say, stop_requested
from colocam.utils.tensors import explain_damage, load_checkpoint, save_checkpoint

SECONDS_BETWEEN_SAVES = 120.0


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
    """

    phase: str
    module: nn.Module
    groups: list[tuple[list[nn.Parameter], float]]
    settings: Optimisation
    plan: Callable[[int], list[BatchIndices]]
    load: Callable[[BatchIndices, int], Tensors]
    terms: Callable[[BatchIndices, Tensors, int, int], dict[str, Tensor]]
    validate: Callable[[int], Validation]


class _Skipped(BaseModel):
    """Counts of :class:`SkippedSteps`."""

    model_config = ConfigDict(strict=True)

    steps: NonNegativeInt
    row: NonNegativeInt
    longest: NonNegativeInt
    terms: dict[str, NonNegativeInt]


class _State(BaseModel):
    """What a checkpoint says about the progress of a training."""

    model_config = ConfigDict(strict=True)

    epoch: NonNegativeInt
    batch: NonNegativeInt
    step: NonNegativeInt
    best: dict[str, float]
    journal: NonNegativeInt
    skipped: _Skipped | None = None


def fit(task: Task, folder: Path, journal: Journal) -> None:
    """Train until the last epoch, from the checkpoint ``folder/last`` if there is one.

    Writes ``folder/last`` (everything needed to continue) and ``folder/<score>`` for each score of the validation.
    A step whose loss is NaN or infinite contributes no gradient; such steps are counted, reported after each epoch,
    and stop the run if they persist (:mod:`colocam.training.skipped`).
    """
    optimiser = make_sgd(task.groups, task.settings)
    state: dict[str, Any] = {"epoch": 0, "batch": 0, "step": 0, "best": {}, "journal": journal.length}
    state = _restored(task, optimiser, folder) or state
    require_same(f"checkpoint of {task.phase}", state["step"])
    if state["epoch"] == task.settings.epochs:
        journal.length = state["journal"]
        return
    journal.rewind(state["journal"])
    skipped = SkippedSteps(state.get("skipped"))
    epochs, steps = task.settings.epochs, len(_plan(task, 0))
    if state["step"]:
        say(f"{task.phase}: continuing after step {state['step']} of {epochs * steps}")
    synchronise_batch_norms(task.module)
    advice = f"lower its lr ({task.settings.lr}), or check the loss terms and the frames"
    saved_at = time.monotonic()

    def save(*, stop: bool) -> None:
        nonlocal saved_at
        state.update(journal=journal.flush(), skipped=skipped.save())
        skipped.check(task.phase, state["epoch"], steps, advice)
        weights = {f"weights.{k}": v for k, v in task.module.state_dict().items()}
        alone(lambda: save_checkpoint(folder, "last", weights | momentum_tensors(optimiser), state))
        saved_at = time.monotonic()
        if stop and state["epoch"] < epochs:
            raise InterruptedRunError(f"stopped in {task.phase} after step {state['step']}")

    device = next(task.module.parameters()).device
    with progress(task.phase, epochs * steps, unit="steps", done=state["step"]) as advance:
        while state["epoch"] < epochs:
            epoch: int = state["epoch"]
            task.module.train()
            ahead = enumerate(_plan(task, epoch)[state["batch"] :], start=state["step"])
            for step, indices, tensors in prefetch(ahead, task.load, device):
                rate = learning_rate(task.settings, step, steps)
                set_learning_rate(optimiser, rate)
                terms = sgd_step(task, optimiser, partial(task.terms, indices, tensors, step, epoch))
                skipped.add(terms)
                journal.add(task.phase, "train", epoch, step, lr=rate, **terms)
                state["step"] += 1
                state["batch"] += 1
                advance(note=f"epoch {epoch + 1}/{epochs}")
                stop, due = any_of(stop_requested(), time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES)
                if stop or due:
                    save(stop=stop)
            journal.flush()  # an error leaves the losses of all steps to look at
            skipped.check(task.phase, epoch, steps, advice)
            alone(partial(_validate, task, folder, journal, state, skipped))
            skipped = SkippedSteps()
            state |= {"epoch": epoch + 1, "batch": 0}
            save(stop=any_of(stop_requested())[0])


def _restored(task: Task, optimiser: torch.optim.SGD, folder: Path) -> dict[str, Any] | None:
    """Restore the weights and the momentum of the last checkpoint; return its state, or None if there is none."""
    if (saved := load_checkpoint(folder, "last")) is None:
        return None
    tensors, state = saved
    weights = {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}
    with explain_damage(folder, "last"):
        _State.model_validate(state)
        task.module.load_state_dict(weights)
        restore_momentum(optimiser, tensors)
    return state


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


def _validate(task: Task, folder: Path, journal: Journal, state: dict[str, Any], skipped: SkippedSteps) -> None:
    """Measure the weights, and save them under each score that they improve."""
    if skipped.steps:
        say(f"{task.phase}, epoch {state['epoch'] + 1}: {skipped} steps, which were skipped")
    task.module.eval()
    result = task.validate(state["epoch"])
    if not all(map(math.isfinite, result.scores.values())):
        raise ColocamError(f"{task.phase} diverged in epoch {state['epoch'] + 1}: lower its lr ({task.settings.lr})")
    values = {**result.scores, **result.values} | ({"skipped": skipped.steps} if skipped.steps else {})
    journal.add(task.phase, "val", state["epoch"], state["step"], **values)
    for name, score in result.scores.items():
        if name not in state["best"] or score > state["best"][name]:
            state["best"][name] = score
            kept = {"epoch": state["epoch"], "step": state["step"], "score": score, **result.values}
            save_checkpoint(folder, name, task.module.state_dict(), kept)
