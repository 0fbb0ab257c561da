"""Timing on either device: warm, repeated, the median."""

import statistics
import time
from collections.abc import Callable, Sequence

import torch


def median_ms(call: Callable[[int], object], device: torch.device, repeats: int) -> float:
    """Median milliseconds of call(i) as launched from Python, i = 0, 1, … (so that inputs can rotate)."""
    return in_turn_ms([call], device, repeats)[0]


def in_turn_ms(calls: Sequence[Callable[[int], object]], device: torch.device, repeats: int) -> list[float]:
    """Median milliseconds of several calls that take turns, so that a busy moment of the machine meets them all."""
    for call in calls:
        for i in range(3):
            call(i)
    times = [[_once_ms(call, i, device) for call in calls] for i in range(repeats)]
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
    """Median milliseconds of call(0) replayed as a CUDA graph: the device's work without the launches."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(0)
    torch.cuda.current_stream(device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(0)
    result = median_ms(lambda _: graph.replay(), device, repeats)
    del kept
    return result


def copy_bandwidth(device: torch.device) -> float:
    """Bytes per second that a large copy reads and writes."""
    size = 1 << 30 if device.type == "cuda" else 1 << 27
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / (1e-3 * median_ms(lambda _: target.copy_(source), device, 10))


def peak_extra_bytes(call: Callable[[int], object], device: torch.device) -> int:
    """Device memory that call(0) holds at its peak beyond what was allocated before it."""
    call(0)
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call(0)
    return torch.cuda.max_memory_allocated(device) - before
