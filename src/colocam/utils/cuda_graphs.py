"""The part of a step that learns nothing, on a GPU started in one go: a host is slower than the kernels it launches."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from colocam.utils.prefetch import Tensors
from colocam.utils.progress import say

Compute = Callable[[Tensors], tuple[Tensor, ...]]

_WARM = 3
"""Runs before recording: kernels are compiled and loaded, and workspaces made, which a recording must not do."""


class Recording(NamedTuple):
    """A function with its inputs and outputs at fixed places; ``replay`` computes these from those."""

    inputs: Tensors
    outputs: tuple[Tensor, ...]
    replay: Callable[[], object]


class Recorded:
    """``compute`` without gradients; on a GPU recorded as a CUDA graph at the first call, and replayed.

    The recording has room for a fixed number of rows, so that batches of all sizes share it: each row that comes out
    may depend on no other row that goes in. What ``compute`` reads besides must stay at its place in memory, as frozen
    weights do. The outputs hold until the next call.

    Args:
        compute: tensors by name, (B, …) each with the rows outermost in memory → tensors (B, …).
        rows: the largest B; a larger one is computed as it comes.
        device: where the tensors are.
    """

    def __init__(self, compute: Compute, rows: int, device: torch.device) -> None:
        self.compute = compute
        self._room = rows if device.type == "cuda" else 0
        self._recording: Recording | None = None

    @torch.no_grad()
    def __call__(self, tensors: Tensors) -> tuple[Tensor, ...]:
        """Compute from tensors with always the same names; where their shapes change beyond B, it is recorded anew."""
        rows = len(next(iter(tensors.values())))
        if rows > self._room:
            return self.compute(tensors)
        if self._recording is None or not _fit(tensors, self._recording.inputs):
            self._recording = None  # what it holds is free for the next
            self._recording = record(self.compute, {name: _room_like(t, self._room) for name, t in tensors.items()})
        if self._recording is None:
            self._room = 0
            return self.compute(tensors)
        for name, place in self._recording.inputs.items():
            place[:rows].copy_(tensors[name])
        self._recording.replay()
        return tuple(output[:rows] for output in self._recording.outputs)


def record(compute: Compute, inputs: Tensors) -> Recording | None:
    """Record ``compute`` on CUDA tensors as a graph; None where it makes the host wait, which no graph can."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM):
            waits = _makes_host_wait(lambda: compute(inputs))
    torch.cuda.current_stream().wait_stream(side)
    if waits:
        say("training is slower than it could be: this backbone makes the host wait for the GPU")
        return None
    graph = torch.cuda.CUDAGraph()
    # thread_local: meanwhile another thread may pin memory for the next batches
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        outputs = compute(inputs)
    return Recording(inputs, outputs, graph.replay)


def _makes_host_wait(call: Callable[[], object]) -> bool:
    """Whether torch complains that ``call`` waits for the device."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return any("called a synchronizing CUDA operation" in str(complaint.message) for complaint in complaints)


def _fit(tensors: Tensors, places: Tensors) -> bool:
    """Whether the tensors have the shapes and types of their places, but for the number of rows."""
    return all(
        (tensors[name].shape[1:], tensors[name].dtype) == (place.shape[1:], place.dtype)
        for name, place in places.items()
    )


def _room_like(tensor: Tensor, rows: int) -> Tensor:
    """Zeros with more rows in the same layout."""
    shape = (rows, *tensor.shape[1:])
    return torch.empty_strided(shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).zero_()


_WARM_PASSES = 3
"""Passes before the recording, in which libraries choose their kernels and take their memory."""


class RecordedPass:
    """``run`` on batches of one shape, recorded once and replayed.

    Its input and its outputs have places of their own on the device, and each pass overwrites them: what is to be kept
    must be copied in the same stream.

    Attributes:
        input: where the present batch is.
    """

    def __init__(self, run: Callable[[Tensor], tuple[Tensor, ...]], example: Tensor) -> None:
        self.input = example.clone()
        stream = torch.cuda.Stream(example.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(example.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_PASSES):
                run(self.input)
        torch.cuda.current_stream(example.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # Another thread may be waiting for answers meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._outputs = run(self.input)

    def replay(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Do the pass over a batch."""
        self.input.copy_(batch)
        self._graph.replay()
        return self._outputs
