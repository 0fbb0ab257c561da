"""Time a stage-2 training step with and without CUDA graphs of the pairwise losses: python scripts/step_with_graphs.py.

Blocks of steps alternate in one process: preset ``paper``, sequences of 4 frames, 32 frames a step, 224 x 224, random
weights and synthetic frames, so no data is needed. Prints the median milliseconds per step by CUDA events and by wall
clock, the time in which the host launches a step, and the ratio without / with for each. ``affinity/graphs.py`` is kept
if the wall-clock ratio of the step is at least 1.03.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice

import torch
from torch import Tensor

from colocam.affinity import graphs
from colocam.config import load_config
from colocam.data.batches import BatchIndices
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.lab.measuring.training_step import both_stages
from colocam.losses import CoLocLoss, CRFLoss
from colocam.training.loop import Task, sgd_step
from colocam.training.optimiser import make_sgd

OVERRIDES = ["backbone.pretrained=false", "localizer.frames=4", "localizer.batch=32"]
BATCHES = 24
"""Different batches in pinned memory, used in turn."""

Times = dict[str, float]


def main() -> None:
    """Print the times as text, and as one line of JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="steps of a block")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of blocks")
    parser.add_argument("--preset", default="paper")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "needs a CUDA device: affinity/graphs.py does nothing on a CPU\n")
    device = torch.device("cuda", torch.cuda.current_device())
    result: dict[str, object] = {"device": torch.cuda.get_device_name(device), "torch": torch.__version__}
    torch.manual_seed(0)
    config = load_config(arguments.preset, overrides=OVERRIDES)
    with both_stages(config, device) as (_, stage2, _classifier):
        step = training_step(stage2, device)
        result["step"] = compare("stage-2 step", step, device, arguments.steps, arguments.rounds)
    result["losses"] = compare("both losses", losses_step(device), device, arguments.steps, arguments.rounds)
    print(json.dumps(result))


def training_step(task: Task, device: torch.device) -> Callable[[], object]:
    """One SGD step on the next batch; copies from pinned memory included, as in the training loop."""
    planned = list(islice(_planned(task), BATCHES))
    loaded = [{name: t.pin_memory() for name, t in task.load(indices, i).items()} for i, indices in enumerate(planned)]
    optimiser, numbers = make_sgd(task.groups, task.settings), count()
    task.module.train()

    def step() -> object:
        number = next(numbers)
        indices, host = planned[number % BATCHES], loaded[number % BATCHES]
        tensors = {name: t.to(device, non_blocking=True) for name, t in host.items()}
        return sgd_step(task, optimiser, partial(task.terms, indices, tensors, number, 0))

    return step


def losses_step(device: torch.device) -> Callable[[], object]:
    """Both pairwise losses and their gradients alone: 8 sequences of 4 frames."""
    frames, maps = (x.to(device) for x in make_frames(32, 224, "scene"))
    maps.requires_grad_()
    sequences = torch.arange(8, device=device).repeat_interleave(4)
    coloc, crf = CoLocLoss(), CRFLoss()

    def step() -> Tensor:
        loss = coloc(frames, maps, sequences, 8) + 1e-9 * crf(frames, maps)
        return torch.autograd.grad(loss, maps)[0]

    return step


def _planned(task: Task) -> Iterator[BatchIndices]:
    for epoch in count():
        yield from task.plan(epoch)


def compare(
    name: str, step: Callable[[], object], device: torch.device, steps: int, rounds: int
) -> dict[str, Times | float]:
    """Median times per step of alternating blocks with and without graphs, and the ratios without / with."""
    found: dict[bool, list[Times]] = {True: [], False: []}
    for enabled in (True, False):
        _block(step, device, steps, enabled=enabled)
    for round_ in range(rounds):
        for enabled in (True, False) if round_ % 2 == 0 else (False, True):
            found[enabled].append(_block(step, device, steps, enabled=enabled))
    medians = {
        enabled: {key: statistics.median(block[key] for block in blocks) for key in blocks[0]}
        for enabled, blocks in found.items()
    }
    ratios = {key: medians[False][key] / medians[True][key] for key in medians[True]}
    for title, times, unit in (
        ("with graphs", medians[True], "ms"),
        ("without graphs", medians[False], "ms"),
        ("without / with", ratios, ""),
    ):
        print(f"{name:14} {title:15} " + ", ".join(f"{key} {value:.3f} {unit}" for key, value in times.items()))
    return {"with_ms": medians[True], "without_ms": medians[False], "ratio": ratios}


def _block(step: Callable[[], object], device: torch.device, steps: int, *, enabled: bool) -> Times:
    graphs.ENABLED = enabled
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    begin.record()
    for _ in range(steps):
        step()
    end.record()
    launched = time.perf_counter()
    torch.cuda.synchronize(device)
    finished = time.perf_counter()
    times = {
        "device": begin.elapsed_time(end),
        "wall clock": 1e3 * (finished - start),
        "host": 1e3 * (launched - start),
    }
    return {key: value / steps for key, value in times.items()}


if __name__ == "__main__":
    main()
