"""Record the kernels of a product or pairwise loss as a CUDA graph, and replay it when the same shapes return.

A pairwise loss is a dozen kernels of a few microseconds each; launching one from Python takes longer than running it.
A recording reads its inputs at the addresses where they were when it was made. Allocators return the same addresses
in every step, so an input is mostly there again; if not, it is copied to a buffer of the recording. Results are cloned.
"""

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

import torch
from torch import Tensor

from colocam.utils.cuda_graphs import capture

# Calls of one shape, and of one set of addresses, before the work is recorded: rare calls are not worth a recording.
_SIGHTINGS = 3
# Sets of addresses with a recording of their own, for each shape.
_MAX_ADDRESSES = 4
_MAX_SEEN = 64
_MAX_SHAPES = 32
# With larger inputs the kernels take longer than the launches, and a recording would need much memory.
_MAX_INPUT_BYTES = 128 << 20
_MAX_HELD_BYTES = 160 << 20

Work = Callable[..., tuple[Tensor, ...]]

_lock = threading.Lock()
_here = threading.local()
_clock = count()

ENABLED = True
"""Whether to record at all; ``scripts/step_with_graphs.py`` measures what it gains."""


def replay(work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...]) -> tuple[Tensor, ...]:
    """``work(*inputs, *options)``, by a replay where the inputs are on a CUDA device and such a call was seen before.

    Args:
        work: a function at module level (it is part of the key) that reads the inputs, never waits for the device,
            and returns new tensors. Tensors that it caches from call to call must be passed to ``hold``.
        inputs: tensors on one device.
        options: everything else that the result depends on.

    Returns:
        Tensors of the caller's own.
    """
    if not _possible(inputs):
        return work(*inputs, *options)
    device = inputs[0].get_device()
    # Recordings share their workspace; that is safe only in the order of one stream.
    place = device, _stream(device)
    key = (work, options, place, *[(t.shape, t.stride(), t.dtype) for t in inputs])
    with _lock:
        shape = _shapes.get(key)
        if shape is None:
            if len(_shapes) >= _MAX_SHAPES:
                _forget_oldest()
            shape = _shapes[key] = _Shape(inputs)
        shape.used = next(_clock)
        return shape(work, inputs, options, place)


def hold(*tensors: Tensor) -> None:
    """Keep tensors that outlive a call, such as cached constants, as long as the recording that reads them."""
    held = getattr(_here, "held", None)
    if held is not None:
        held.extend(tensors)


def clear() -> None:
    """Forget all recordings and free their memory."""
    with _lock:
        _shapes.clear()


class _Recording:
    """The graph of one call, and the tensors that it reads and writes."""

    def __init__(self, work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...], pool: Any) -> None:  # noqa: ANN401
        device = inputs[0].device
        self.held: list[Tensor] = []
        _here.held = self.held
        try:
            self.graph, self.outputs = capture(
                lambda: _directly(work, inputs, options), device, warm_up=0, pool=pool, stream=_side(device)
            )
        finally:
            _here.held = None

    @property
    def pool(self) -> Any:  # noqa: ANN401
        """Memory that further recordings on the same stream may share."""
        return self.graph.pool()

    def __call__(self) -> tuple[Tensor, ...]:
        self.graph.replay()
        return tuple([output.clone() for output in self.outputs])


class _Shape:
    """The recordings of calls with one key."""

    def __init__(self, inputs: tuple[Tensor, ...]) -> None:
        self.calls = self.used = 0
        self.never = not 0 < _bytes(inputs) <= _MAX_INPUT_BYTES
        self.seen: Counter[tuple[int, ...]] = Counter()
        self.recordings: dict[tuple[int, ...], _Recording] = {}
        self.own: tuple[tuple[Tensor, ...], _Recording] | None = None

    def __call__(
        self, work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...], place: Hashable
    ) -> tuple[Tensor, ...]:
        addresses = tuple([t.data_ptr() for t in inputs])
        recording = self.recordings.get(addresses)
        if recording is not None:
            return recording()
        self.calls += 1
        if len(self.seen) >= _MAX_SEEN:
            self.seen.clear()
        self.seen[addresses] += 1
        if self.never or self.calls < _SIGHTINGS:
            return _directly(work, inputs, options)
        with torch.inference_mode(mode=False), torch.no_grad():
            if self.seen[addresses] >= _SIGHTINGS and self._has_room():
                # What is recorded has run once with these very inputs: nothing is left to compile or to load.
                result = _directly(work, inputs, options)
                made = self._record(work, inputs, options, place)
                if made is not None:
                    self.recordings[addresses] = made
                    _trim()
                return result
            if self.own is None:
                own = tuple(torch.empty_like(t, requires_grad=False).copy_(t) for t in inputs)
                result = _directly(work, own, options)
                made = self._record(work, own, options, place)
                if made is not None:
                    self.own = own, made
                    _trim()
                return result
            own, recording = self.own
            for mine, given in zip(own, inputs, strict=True):
                mine.copy_(given)
            return recording()

    def _record(
        self, work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...], place: Hashable
    ) -> _Recording | None:
        alive = (r for key, shape in _shapes.items() if key[2] == place for r in shape.all())
        shared = next(alive, None)
        try:
            return _Recording(work, inputs, options, shared.pool if shared else None)
        except RuntimeError as error:
            self.never = True
            warnings.warn(
                f"affinity: launches could not be recorded and are launched one by one: {error}", stacklevel=2
            )
            return None

    def _has_room(self) -> bool:
        """Whether one more set of addresses may have a recording, and outputs, of its own."""
        return len(self.recordings) < _MAX_ADDRESSES and 3 * self.held_bytes() <= 2 * _MAX_HELD_BYTES

    def all(self) -> list[_Recording]:
        return [*self.recordings.values(), *([self.own[1]] if self.own else [])]

    def held_bytes(self) -> int:
        tensors = [output for recording in self.all() for output in recording.outputs]
        return _bytes((*tensors, *(self.own[0] if self.own else ())))


_shapes: dict[tuple[Any, ...], _Shape] = {}


def _forget_oldest() -> None:
    """Delete the recordings of the least recently used shape."""
    del _shapes[min(_shapes, key=lambda key: _shapes[key].used)]


def _trim() -> None:
    """Delete recordings until they need no more memory than allowed."""
    while len(_shapes) > 1 and sum(shape.held_bytes() for shape in _shapes.values()) > _MAX_HELD_BYTES:
        _forget_oldest()


def _directly(work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...]) -> tuple[Tensor, ...]:
    """Run the work without recording parts of it."""
    _here.inside = True
    try:
        return work(*inputs, *options)
    finally:
        _here.inside = False


def _bytes(tensors: tuple[Tensor, ...]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _possible(inputs: tuple[Tensor, ...]) -> bool:
    """Whether to use a replay; while the caller records a graph of its own, the launches belong to that one."""
    return (
        ENABLED
        and inputs[0].is_cuda
        and not getattr(_here, "inside", False)
        and not torch.cuda.is_current_stream_capturing()
    )


def _stream(device: int) -> int:
    """Handle of the current stream; the public way makes an object, which takes as long as a launch."""
    return int(torch._C._cuda_getCurrentRawStream(device))  # noqa: SLF001


_sides: dict[int, torch.cuda.Stream] = {}


def _side(device: torch.device) -> torch.cuda.Stream:
    """The stream on which recordings are made; one for all, so that they can share memory."""
    return _sides.setdefault(device.index, torch.cuda.Stream(device))  # type: ignore[no-untyped-call]
