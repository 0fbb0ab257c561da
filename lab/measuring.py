"""Shared by benchmarks and studies: conditions of a measurement, synthetic frames, timing on CPU and CUDA."""

import datetime as dt
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from colocam.losses import CoLocLoss, CRFLoss
from colocam.utils.cuda_graphs import capture
from colocam.utils.files import write_json


def conditions(what: str, device: torch.device) -> dict[str, Any]:
    """What was measured, device, version of torch, and date: the first entries of a result."""
    return {
        "what": what,
        "device": device_name(device),
        "torch": torch.__version__,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }


def device_name(device: torch.device) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU"


def headline(result: dict[str, Any]) -> str:
    """The conditions in one line."""
    return f"{result['what']}; {result['device']}, torch {result['torch']}, {result['date']}"


def keep(result: dict[str, Any], json_path: Path | None) -> dict[str, Any]:
    """Write the result to ``json_path``, if given, and return it."""
    if json_path is not None:
        write_json(json_path, result)
    return result


def tell(row: dict[str, Any], key: str, text: str, value: float, unit: str = "frames/s") -> None:
    """Write a number into a row and print it, as soon as it is measured."""
    row[key] = value
    print(f"  {text:34} {value:9.{1 if unit == 'frames/s' else 2}f} {unit}".rstrip(), flush=True)


Kind = Literal["scene", "noise"]


def make_frames(count: int, size: int, kind: Kind, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Frames (count, 3, size, size) uint8 and maps (count, size, size) float32 of one moving blob.

    A scene is one sequence: colored noise with amplitudes 1/f, as in photographs, mostly gray, a moving colored
    object, and sensor noise.
    """
    generator = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(*[torch.linspace(0, 1, size)] * 2, indexing="ij")
    t = torch.linspace(0, 6.28, count)[:, None, None]
    distance = (y - 0.5 - 0.2 * t.sin()).square() + (x - 0.5 - 0.2 * t.cos()).square()
    maps = torch.sigmoid(12 * (0.25 - distance.sqrt()) / 0.25)
    if kind == "noise":
        return torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8), maps
    field = torch.zeros(1, 3, size, size)
    cells = 2
    while cells < size:
        octave = torch.randn(1, 3, cells, cells, generator=generator) / cells**0.5
        field += functional.interpolate(octave, size=(size, size), mode="bicubic", align_corners=False)
        cells *= 2
    gray = field.mean(1, keepdim=True)
    background = 120 + 55 * gray + 22 * (field - gray)
    color = torch.tensor([190.0, 90.0, 60.0]).view(1, 3, 1, 1) + 25 * gray
    mask = (distance < 0.0625).float()[:, None]
    grain = torch.randn(count, 3, size, size, generator=generator) * 3
    frames = background * (1 - mask) + color * mask + grain
    return frames.round().clamp(0, 255).byte(), maps


SETS = 3
"""Input sets used in turn, so that the input of a call is not in the cache."""
SIGMA, SIGMA_XY = 15.0, 100.0
"""Color levels and pixels, as published."""
Step = Callable[[int], Tensor]


def loss_step(count: int, size: int, sequences: list[int], kind: Kind, device: torch.device) -> Step:
    """A function that computes a loss of frames of size² in input set i and returns its gradient.

    The loss is CoLocLoss for the index of the sequence of each frame, or without them CRFLoss.
    """
    sets = [make_frames(count, size, kind, seed) for seed in range(SETS)]
    inputs = [(frames.to(device), maps.to(device).requires_grad_()) for frames, maps in sets]
    # A single frame has weight 0 in eq. 4, but takes the same time.
    loss = CoLocLoss(SIGMA) if sequences else CRFLoss(SIGMA, SIGMA_XY)
    arguments = (torch.tensor(sequences, device=device), len(set(sequences))) if sequences else ()

    def step(i: int) -> Tensor:
        frames, maps = inputs[i % SETS]
        return torch.autograd.grad(loss(frames, maps, *arguments), maps)[0]

    return step


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
    """Median milliseconds of the sum of a few numbers and its gradient: the time of autograd itself."""
    inputs = torch.zeros(1024, device=device, requires_grad=True)
    return median_ms(lambda _: torch.autograd.grad(inputs.sum(), inputs), device, repeats)


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
