"""Many small launches as one: work on CUDA tensors recorded as a CUDA graph, and replayed when the same shapes return.

A step of the colour term is a dozen kernels of a few microseconds each, and launching one from Python takes longer than
running it. A recording reads its inputs where they lay when it was made. Allocators hand out the same addresses step
after step, so an input mostly lies there again; where it does not, it is copied to memory of our own.
What a replay costs beyond its one launch is Python and the copies of the results.
"""

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

import torch
from torch import Tensor

# Calls of one shape, and of one set of addresses, before the work is recorded: what comes once is not worth it.
_SIGHTINGS = 3
# Sets of addresses with a recording of their own, for each shape.
_MAX_ADDRESSES = 4
_MAX_SEEN = 64
_MAX_SHAPES = 32
# Larger inputs keep the device busy for longer than the launches take, and their recordings would hold much memory.
_MAX_INPUT_BYTES = 128 << 20
_MAX_HELD_BYTES = 160 << 20

Work = Callable[..., tuple[Tensor, ...]]

_lock = threading.Lock()
_here = threading.local()
_clock = count()


def replay(work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...]) -> tuple[Tensor, ...]:
    """``work(*inputs, *options)``, by a replay where the inputs are on a CUDA device and such a call was seen before.

    Args:
        work: a function of a module (it is part of the key), which reads the inputs, waits for nothing on the device,
            and returns new tensors. Tensors that it keeps elsewhere from call to call must go through ``hold``.
        inputs: tensors on one device.
        options: everything else that the result depends on.

    Returns:
        Tensors of the caller's own.
    """
    if not _possible(inputs):
        return work(*inputs, *options)
    device = inputs[0].get_device()
    # Recordings share their workspace, which only the order of one stream protects.
    place = device, _stream(device)
    key = (work, options, place, *[(t.shape, t.stride(), t.dtype) for t in inputs])
    with _lock:
        # Looked up once: a tuple finds its hash anew each time.
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
    """Launches of one call, and the tensors that they read and write."""

    def __init__(self, work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...], pool: Any) -> None:  # noqa: ANN401
        device = inputs[0].device
        self.held: list[Tensor] = []
        self.graph = torch.cuda.CUDAGraph()
        side = _side(device)
        side.wait_stream(torch.cuda.current_stream(device))
        _here.held = self.held
        try:
            with torch.cuda.stream(side):
                # Other threads may go on allocating.
                self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    self.outputs = _directly(work, inputs, options)
                finally:
                    self.graph.capture_end()
        finally:
            _here.held = None
        torch.cuda.current_stream(device).wait_stream(side)

    @property
    def pool(self) -> Any:  # noqa: ANN401
        """Memory that further recordings on the same stream may share."""
        return self.graph.pool()

    def __call__(self) -> tuple[Tensor, ...]:
        self.graph.replay()
        return tuple([output.clone() for output in self.outputs])


class _Shape:
    """What is known of calls with one key."""

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
            warnings.warn(f"affinity: launches could not be recorded and stay single: {error}", stacklevel=2)
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
    """Let go of the shape that was not used for longest."""
    del _shapes[min(_shapes, key=lambda key: _shapes[key].used)]


def _trim() -> None:
    """Let go of shapes as far as memory asks."""
    while len(_shapes) > 1 and sum(shape.held_bytes() for shape in _shapes.values()) > _MAX_HELD_BYTES:
        _forget_oldest()


def _directly(work: Work, inputs: tuple[Tensor, ...], options: tuple[Hashable, ...]) -> tuple[Tensor, ...]:
    """Run the work, of which no part is to be recorded on its own."""
    _here.inside = True
    try:
        return work(*inputs, *options)
    finally:
        _here.inside = False


def _bytes(tensors: tuple[Tensor, ...]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _possible(inputs: tuple[Tensor, ...]) -> bool:
    """Whether a replay could serve; while the caller records a graph of its own, the launches belong to that one."""
    return inputs[0].is_cuda and not getattr(_here, "inside", False) and not torch.cuda.is_current_stream_capturing()


def _stream(device: int) -> int:
    """Handle of the current stream; the public way makes an object, which takes as long as a launch."""
    return int(torch._C._cuda_getCurrentRawStream(device))  # noqa: SLF001


_sides: dict[int, torch.cuda.Stream] = {}


def _side(device: torch.device) -> torch.cuda.Stream:
    """The stream on which recordings are made; one for all, so that they can share memory."""
    return _sides.setdefault(device.index, torch.cuda.Stream(device))  # type: ignore[no-untyped-call]
