"""Record work on a GPU as a CUDA graph and replay it: launching its kernels one by one takes longer than running them.

:class:`Recorded` is for functions of batches without gradients, :class:`RecordedLoss` for a loss with its gradients,
:func:`capture` for anything else.
"""

import logging
import threading
import warnings
from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from colocam.errors import first_line
from colocam.utils.progress import say

Tensors = dict[str, Tensor]
Compute = Callable[[Tensors], tuple[Tensor, ...]]
Result = TypeVar("Result")

WARM_UP = 3
"""Calls before the recording. They compile and load kernels and allocate workspaces, which a recording must not do."""

_capturing = threading.Lock()
"""CUDA records one graph at a time."""
_probing = threading.Lock()
"""The mode of torch and the handlers of warnings are those of the whole process."""


class Recording(NamedTuple):
    """A recorded function with input and output tensors at fixed addresses.

    Attributes:
        inputs: read by ``replay``.
        outputs: overwritten by ``replay``.
        replay: run the function again.
    """

    inputs: Tensors
    outputs: tuple[Tensor, ...]
    replay: Callable[[], object]


class Recorded:
    """Call ``compute`` without gradients; on a GPU, record it as a CUDA graph at the first call and replay it later.

    The recording has a fixed number of rows; smaller batches are padded. So each output row must depend on the same
    input row only. Other tensors that ``compute`` reads, such as weights, must keep their addresses. The outputs are
    valid until the next call. A function that makes the host wait for the GPU, or that fails to record, is called
    directly, with one message.

    Args:
        compute: tensors by name, (B, …) each, with the rows outermost in memory → tensors (B, …).
        rows: largest B that is recorded; larger batches are computed directly.
        device: device of the tensors; on a CPU nothing is recorded.
    """

    def __init__(self, compute: Compute, rows: int, device: torch.device) -> None:
        self.compute = compute
        self._rows = rows if device.type == "cuda" else 0
        self._recording: Recording | None = None

    @torch.no_grad()
    def __call__(self, tensors: Tensors) -> tuple[Tensor, ...]:
        """Compute; the names must be the same in every call. Shapes that differ beyond B are recorded again."""
        rows = len(next(iter(tensors.values())))
        if rows > self._rows:
            return self.compute(tensors)
        if self._recording is None or not _fit(tensors, self._recording.inputs, axis=1):
            self._recording = None  # frees its memory for the next recording
            self._recording = record(self.compute, {name: _padded_like(t, self._rows) for name, t in tensors.items()})
        if self._recording is None:
            self._rows = 0
            return self.compute(tensors)
        for name, buffer in self._recording.inputs.items():
            buffer[:rows].copy_(tensors[name])
        self._recording.replay()
        return tuple(output[:rows] for output in self._recording.outputs)


class RecordedLoss:
    """Call a module that computes a loss; on a GPU, record it with its gradients at the first call and replay it later.

    The module must launch the same kernels in every call with inputs of the same shapes and types; other inputs are
    computed directly, and so is a module that makes the host wait for the GPU, or that fails to record.

    Args:
        loss: tensors → scalar. Its parameters and buffers must keep their addresses.
        device: device of the tensors; on a CPU nothing is recorded.
    """

    def __init__(self, loss: nn.Module, device: torch.device) -> None:
        self.loss = loss
        self._parameters = [parameter for parameter in loss.parameters() if parameter.requires_grad]
        self._wanted = device.type == "cuda"
        self._recording: Recording | None = None

    def __call__(self, **tensors: Tensor) -> Tensor:
        """The loss, differentiable once with respect to the parameters."""
        if self._wanted:
            self._wanted = False  # one try
            self._recording = self._record(tensors)
        if self._recording is None or not _fit(tensors, self._recording.inputs, axis=0):
            loss: Tensor = self.loss(**tensors)
            return loss
        for name, buffer in self._recording.inputs.items():
            buffer.copy_(tensors[name])
        value: Tensor = _Replayed.apply(self._recording, *self._parameters)
        return value

    def _record(self, tensors: Tensors) -> Recording | None:
        """Record the loss and its gradients; buffers of the module, as of batch norms, keep their values."""
        before = [buffer.clone() for buffer in self.loss.buffers()]
        gradients = torch.autograd.grad(self.loss(**tensors), self._parameters, allow_unused=True)
        used = [gradient is not None for gradient in gradients]
        self._parameters = list(compress(self._parameters, used))

        def compute(inputs: Tensors) -> tuple[Tensor, ...]:
            with torch.enable_grad():
                loss = self.loss(**inputs)
                return (loss.detach(), *torch.autograd.grad(loss, self._parameters))

        recording = record(compute, {name: tensor.clone() for name, tensor in tensors.items()})
        with torch.no_grad():
            for buffer, value in zip(self.loss.buffers(), before, strict=True):
                buffer.copy_(value)
        return recording


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recording: Recording, *parameters: Tensor) -> Tensor:  # noqa: ANN401, ARG004 - torch's signature
        recording.replay()
        ctx.gradients = recording.outputs[1:]
        return recording.outputs[0].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        return None, *(gradient * outer for gradient in ctx.gradients)


def record(compute: Compute, inputs: Tensors) -> Recording | None:
    """Record ``compute`` on CUDA tensors; None, after a message, if that is impossible."""
    device = next(iter(inputs.values())).device
    if makes_host_wait(lambda: compute(inputs)):
        say("GPU kernels are launched one by one, which is slower: the network makes the host wait for the GPU")
        return None
    try:
        graph, outputs = capture(lambda: compute(inputs), device)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        say(f"GPU kernels are launched one by one, which is slower: recording them failed: {first_line(error)}")
        return None
    return Recording(inputs, outputs, graph.replay)


def capture(call: Callable[[], Result], device: torch.device) -> tuple[torch.cuda.CUDAGraph, Result]:
    """Call ``call`` ``WARM_UP`` times, then record one more call as a CUDA graph.

    Args:
        call: launches work on ``device`` and never waits for it.
        device: a CUDA device.

    Returns:
        The graph, and the result of the recorded call: its tensors hold values only after ``graph.replay()``.
    """
    here = torch.cuda.current_stream(device)
    # A failed recording does not leave its stream; the outer block does.
    with torch.cuda.device(device), torch.cuda.stream(here):
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(here)
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                call()
        here.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # thread_local: other threads may allocate memory and wait for results meanwhile
        with _capturing, torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            result = call()
        here.wait_stream(side)
    return graph, result


def makes_host_wait(call: Callable[[], object]) -> bool:
    """Run ``call`` twice and return whether torch warned of waiting in the second; the first may load kernels.

    To try a recording instead would not do: one that fails breaks torch's random numbers on the GPU. Warnings of other
    threads do not count: the mode of torch is one for the whole process.
    """
    log, waits = logging.getLogger("py.warnings"), _Waits()
    with _probing, warnings.catch_warnings():
        mode = torch.cuda.get_sync_debug_mode()
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        log.addHandler(waits)
        level, propagate, log.propagate = log.level, log.propagate, False
        log.setLevel(logging.WARNING)
        torch.cuda.set_sync_debug_mode("warn")
        try:
            for _ in range(2):
                waits.seen = False
                call()
        finally:
            torch.cuda.set_sync_debug_mode(mode)
            log.removeHandler(waits)
            log.setLevel(level)
            log.propagate = propagate
            logging.captureWarnings(capture=False)
    return waits.seen


class _Waits(logging.Handler):
    """Notices torch's warnings of waiting in the thread that makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self._thread = False, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        is_ours = record.thread == self._thread
        self.seen |= is_ours and "called a synchronizing CUDA operation" in record.getMessage()


def _fit(tensors: Tensors, buffers: Tensors, axis: int) -> bool:
    """Whether the tensors have the types of the buffers, and their shapes from ``axis`` on."""
    return all(
        (tensors[name].shape[axis:], tensors[name].dtype) == (buffer.shape[axis:], buffer.dtype)
        for name, buffer in buffers.items()
    )


def _padded_like(tensor: Tensor, rows: int) -> Tensor:
    """Zeros (rows, …) in the memory layout of ``tensor``."""
    shape = (rows, *tensor.shape[1:])
    return torch.empty_strided(shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).zero_()
