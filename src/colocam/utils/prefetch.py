"""The tensors of the next steps are read while the current step computes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from colocam.data.batches import BatchIndices

AHEAD = 3

Tensors = dict[str, Tensor]


def prefetch(
    steps: Iterable[tuple[int, BatchIndices]], load: Callable[[BatchIndices, int], Tensors], device: torch.device
) -> Iterator[tuple[int, BatchIndices, Tensors]]:
    """Load each step's tensors in a thread, a few steps ahead, and hand them over on ``device``.

    To a GPU they travel through pinned memory without waiting. What ``load`` raises is raised here, at its step.

    Args:
        steps: number and frames of each step.
        load: (frames of a step, its number) → tensors in host memory.
        device: where the step computes.
    """

    def read(indices: BatchIndices, step: int) -> Tensors:
        tensors = load(indices, step)
        return {name: t.pin_memory() for name, t in tensors.items()} if device.type == "cuda" else tensors

    waiting: deque[tuple[int, BatchIndices, Future[Tensors]]] = deque()

    def hand_over() -> tuple[int, BatchIndices, Tensors]:
        step, indices, future = waiting.popleft()
        return step, indices, {name: t.to(device, non_blocking=True) for name, t in future.result().items()}

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch") as reader:
        try:
            for step, indices in steps:
                waiting.append((step, indices, reader.submit(read, indices, step)))
                if len(waiting) > AHEAD:
                    yield hand_over()
            while waiting:
                yield hand_over()
        finally:
            for *_, future in waiting:
                future.cancel()
