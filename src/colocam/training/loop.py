"""The training loop of both stages: it can be stopped after any step, and a resumed run gives the same weights.

What happens is in the lines of metrics.jsonl. Each is a JSON object, of a training step or of a validation. It has
``phase``, ``event`` (``train`` or ``val``), ``epoch`` and ``step``. ``train`` lines add ``lr``, ``loss`` and the
weighted loss terms; a number that is not finite is null. ``val`` lines add the scores, and ``skipped``, the number of
steps of the epoch whose loss was not finite, where there were any. When a run is resumed, the lines of steps that it
repeats are removed first, so that no step appears twice.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt
from torch import Tensor, nn

from colocam.config import Optimization
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
    synchronize_batch_norms,
    world,
)
from colocam.utils.files import explain_os_errors
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import progress, say, stop_requested
from colocam.utils.tensors import explain_damage, load_checkpoint, save_checkpoint

SECONDS_BETWEEN_SAVES = 120.0
MOST_IN_A_ROW = 20
"""More skipped steps in a row than this stop the run, ..."""
MOST_OF_AN_EPOCH = 0.5
"""... and so does a larger share of an epoch's steps."""
Value = float | int | str | None | Tensor
AfterEpoch = Callable[[str, int, Mapper], None]
"""Called with the phase, the epoch (from 0), and what computes maps with its weights."""


class Journal:
    """Collects lines, whose numbers may be tensors on the device, and writes them on :meth:`flush`.

    Args:
        path: the file; None where another process writes it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.length = 0
        """Length of the file in bytes up to the last line that was written."""
        self._waiting: list[dict[str, Value]] = []

    def add(self, phase: str, event: str, epoch: int, step: int, **values: Value) -> None:
        """Add one line; tensors are copied from the device later."""
        self._waiting.append({"phase": phase, "event": event, "epoch": epoch, "step": step, **values})

    def flush(self) -> int:
        """Append the collected lines and return the file's length in bytes, for the checkpoint."""
        if self.path is None:
            self._waiting.clear()
            return self.length
        lines = "".join(json.dumps({k: _plain(v) for k, v in line.items()}) + "\n" for line in self._waiting)
        with explain_os_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
            self.length = file.tell()
        self._waiting.clear()
        return self.length

    def rewind(self, length: int) -> None:
        """Truncate the file to ``length`` bytes: the lines after it belong to steps that will be repeated."""
        self._waiting.clear()
        self.length = length
        if self.path is None:
            return
        with explain_os_errors(self.path), self.path.open("ab") as file:
            file.truncate(min(length, file.tell()))  # truncating beyond the end would append zeros


def _plain(value: Value) -> float | int | str | None:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


class SkippedSteps(BaseModel):
    """The skipped steps of one epoch, as a checkpoint keeps them.

    Losses are copied from the device only when they are counted, so that a step does not wait for the device.

    Attributes:
        steps: how many were skipped.
        row: how many of them were the last ones.
        longest: most in a row.
        terms: how often each term was not finite.
    """

    model_config = ConfigDict(strict=True)

    steps: NonNegativeInt = 0
    row: NonNegativeInt = 0
    longest: NonNegativeInt = 0
    terms: dict[str, NonNegativeInt] = {}
    _pending: list[dict[str, Tensor]] = []

    def add(self, terms: dict[str, Tensor]) -> None:
        """Remember the ``loss`` of a step and its terms, detached scalars on any device."""
        self._pending.append(terms)

    def count(self) -> int:
        """Count the steps that were added, and return how many were skipped in all; waits for the device."""
        if self._pending:
            names = list(self._pending[0])
            finite = torch.stack([torch.stack(list(terms.values())) for terms in self._pending]).isfinite().tolist()
            self._pending.clear()
            for step in finite:
                broken = [name for name, good in zip(names, step, strict=True) if not good]
                self.row = self.row + 1 if "loss" in broken else 0
                self.steps += "loss" in broken
                self.longest = max(self.longest, self.row)
                for name in set(broken) - {"loss"}:
                    self.terms[name] = self.terms.get(name, 0) + 1
        return self.steps

    def check(self, phase: str, epoch: int, steps: int, advice: str) -> None:
        """Raise an error with ``advice`` if too many of the epoch's ``steps`` were skipped."""
        if self.count() > MOST_OF_AN_EPOCH * steps or self.longest > MOST_IN_A_ROW:
            raise ColocamError(f"{phase} stopped in epoch {epoch + 1}: {self} of {steps} steps: {advice}")

    def __str__(self) -> str:
        where = f" (term {', '.join(sorted(self.terms))})" if self.terms else ""
        return f"the loss was NaN or infinite{where} in {self.count()}"


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
            sum is minimized.
        validate: epoch → how good the weights are.
        mapper: what computes maps with the present weights; None: nothing.
    """

    phase: str
    module: nn.Module
    groups: list[tuple[list[nn.Parameter], float]]
    settings: Optimization
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
    and stop the run if they persist (:class:`SkippedSteps`).
    """
    optimizer = make_sgd(task.groups, task.settings)
    begin = _State(epoch=0, batch=0, step=0, best={}, journal=journal.length)
    state = _restored(task, optimizer, folder) or begin
    require_same(f"checkpoint of {task.phase}", state.step)
    if state.epoch == task.settings.epochs:
        journal.length = state.journal
        return
    journal.rewind(state.journal)
    epochs, steps = task.settings.epochs, len(_plan(task, 0))
    if state.step:
        say(f"{task.phase}: continuing after step {state.step} of {epochs * steps}")
    synchronize_batch_norms(task.module)
    advice = f"lower its lr ({task.settings.lr}), or check the loss terms and the frames"
    saved_at = time.monotonic()

    def save(*, stop: bool) -> None:
        nonlocal saved_at
        state.journal = journal.flush()
        state.skipped.check(task.phase, state.epoch, steps, advice)
        weights = {f"weights.{k}": v for k, v in task.module.state_dict().items()}
        alone(lambda: save_checkpoint(folder, "last", weights | momentum_tensors(optimizer), state.model_dump()))
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
                set_learning_rate(optimizer, rate)
                terms = sgd_step(task, optimizer, partial(task.terms, indices, tensors, step, epoch))
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


def _restored(task: Task, optimizer: torch.optim.SGD, folder: Path) -> _State | None:
    """Restore the weights and the momentum of the last checkpoint; return its state, or None if there is none."""
    if (saved := load_checkpoint(folder, "last")) is None:
        return None
    tensors, state = saved
    weights = {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}
    with explain_damage(folder, "last"):
        task.module.load_state_dict(weights)
        restore_momentum(optimizer, tensors)
        return _State.model_validate(state)


def _plan(task: Task, epoch: int) -> list[BatchIndices]:
    """The frames of each step that this process computes."""
    try:
        return [indices.share(rank(), world()) for indices in task.plan(epoch)]
    except ValueError as error:
        advice = f"start fewer processes, or raise the batch ({task.settings.batch})"
        raise ColocamError(f"{task.phase}: {error}, one for each process: {advice}") from error


def sgd_step(task: Task, optimizer: torch.optim.SGD, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Take one SGD step; a loss that is not finite has no gradient. Returns the detached terms and their sum.

    Where several processes share the step, ``compute`` gives the parts of this one, and the result is that of all.
    """
    optimizer.zero_grad(set_to_none=True)
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
    optimizer.step()
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


def learning_rate(settings: Optimization, step: int, steps_per_epoch: int) -> float:
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


def make_sgd(groups: Iterable[tuple[list[nn.Parameter], float]], settings: Optimization) -> torch.optim.SGD:
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


def set_learning_rate(optimizer: torch.optim.SGD, rate: float) -> None:
    """Set the learning rate of each group to ``rate`` times its factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]


def momentum_tensors(optimizer: torch.optim.SGD) -> dict[str, Tensor]:
    """The momentum of each parameter, under names that do not depend on torch's own layout."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    buffers = ((i, optimizer.state[p].get("momentum_buffer")) for i, p in enumerate(parameters))
    return {f"momentum.{i:04d}": buffer for i, buffer in buffers if buffer is not None}


def restore_momentum(optimizer: torch.optim.SGD, tensors: dict[str, Tensor]) -> None:
    """Inverse of :func:`momentum_tensors`."""
    for i, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        if (buffer := tensors.get(f"momentum.{i:04d}")) is not None:
            optimizer.state[p]["momentum_buffer"] = torch.empty_like(p).copy_(buffer)  # in the parameter's own layout
