"""Timing on either device: warm, repeated, the median."""

import statistics
import time
from collections.abc import Callable

import torch


def median_ms(call: Callable[[int], object], device: torch.device, repeats: int) -> float:
    """Median milliseconds of call(i) as launched from Python, i = 0, 1, … (so that inputs can rotate)."""
    for i in range(3):
        call(i)
    times = []
    for i in range(repeats):
        if device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            torch.cuda.synchronize(device)
            begin.record()
            call(i)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            start = time.perf_counter()
            call(i)
            times.append(1e3 * (time.perf_counter() - start))
    return float(statistics.median(times))


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
