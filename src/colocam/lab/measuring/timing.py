"""Timing on CPU and CUDA: the median of repeated calls after a warm-up."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from colocam.utils.cuda_graphs import capture

WARM = 3
"""Calls before those that are timed."""
FEWEST, ENOUGH_S = 3, 20.0
"""Least number of timed calls, and seconds after which no more are made: slow calls vary little."""


def median_ms(call: Callable[[int], object], device: torch.device, repeats: int) -> float:
    """Median milliseconds of call(i), i = 0, 1, … (so that inputs can be used in turn)."""
    return in_turn_ms([call], device, repeats)[0]


def in_turn_ms(calls: Sequence[Callable[[int], object]], device: torch.device, repeats: int) -> list[float]:
    """Median milliseconds of several calls made in turn, so that other load on the machine affects all of them."""
    for call in calls:
        for i in range(WARM):
            call(i)
    times: list[list[float]] = []
    begin = time.perf_counter()
    while len(times) < repeats and (len(times) < FEWEST or time.perf_counter() - begin < ENOUGH_S):
        times.append([_once_ms(call, len(times), device) for call in calls])
    return [float(statistics.median(own)) for own in zip(*times, strict=True)]


def _once_ms(call: Callable[[int], object], i: int, device: torch.device) -> float:
    if device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        torch.cuda.synchronize(device)
        begin.record()
        call(i)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))
    start = time.perf_counter()
    call(i)
    return 1e3 * (time.perf_counter() - start)


def graph_ms(call: Callable[[int], object], device: torch.device, repeats: int) -> float:
    """Median milliseconds of call(0) replayed as a CUDA graph: the time on the device without the launches."""
    graph, kept = capture(lambda: call(0), device)
    result = median_ms(lambda _: graph.replay(), device, repeats)
    del kept
    return result


def empty_autograd_ms(device: torch.device, repeats: int) -> float:
    """Median milliseconds of a loss that computes nothing and its gradient: the time of autograd itself."""
    inputs = torch.zeros(1024, device=device, requires_grad=True)
    value, gradient = torch.ones((), device=device), torch.ones(1024, device=device)

    def step(_: int) -> Tensor:
        return torch.autograd.grad(_Empty.apply(inputs, value, gradient), inputs)[0]

    return median_ms(step, device, repeats)


class _Empty(torch.autograd.Function):
    """A loss with as few kernels as possible: a copy of its value, and a multiple of its gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:  # noqa: ANN401, ARG004
        ctx.save_for_backward(gradient)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return outer * ctx.saved_tensors[0], None, None


def copy_bandwidth(device: torch.device) -> float:
    """Bytes per second that a large copy reads and writes."""
    size = 1 << 30 if device.type == "cuda" else 1 << 27
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / (1e-3 * median_ms(lambda _: target.copy_(source), device, 10))


def peak_extra_bytes(call: Callable[[int], object], device: torch.device) -> int:
    """Peak device memory of call(0) beyond what was allocated before it, in bytes."""
    call(0)
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call(0)
    return torch.cuda.max_memory_allocated(device) - before
