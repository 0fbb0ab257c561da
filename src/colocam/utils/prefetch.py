"""Prefetch: produce the next items in a thread while the current one is used."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from queue import Empty, Queue
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from colocam.utils.progress import take

if TYPE_CHECKING:
    import torch
    from torch import Tensor

S = TypeVar("S")
T = TypeVar("T")
Indices = TypeVar("Indices")
Tensors: TypeAlias = "dict[str, Tensor]"

STEPS_AHEAD = 3
"""Training steps whose tensors are loaded before they are needed."""


class _End(NamedTuple):
    """Follows the last item: the error that the producer raised, if it did."""

    error: BaseException | None


def ahead(
    items: Iterable[T], size: int, name: str, on_stop: Callable[[], object] | None = None
) -> Generator[T, None, None]:
    """Yield ``items``, produced in a thread, at most ``size`` + 1 of them before they are asked for.

    An error of the producer is raised here, after the items before it. When this generator ends or is closed, ``items``
    is closed too and the thread has ended; the item in production is finished first. The thread is a daemon, so that a
    second Ctrl-C stops the program even if that item never comes.

    Args:
        items: the producer.
        size: items that may wait, 1 or more.
        name: of the thread.
        on_stop: called when this generator ends, before the thread is waited for, e.g. to tell what it waits for.
    """
    waiting: Queue[T | _End] = Queue(size)
    stopping = threading.Event()

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                waiting.put(item)
                if stopping.is_set():
                    break
        except BaseException as raised:  # noqa: BLE001 - it is raised again in the consumer's thread
            error = raised
        if isinstance(items, Generator):
            items.close()
        if not stopping.is_set():
            waiting.put(_End(error))

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        while not isinstance(item := take(waiting), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopping.set()
        if on_stop is not None:
            on_stop()
        # The producer may be waiting for room in the queue; after the signal it puts one more item at most.
        with suppress(Empty):
            while True:
                waiting.get_nowait()
        thread.join()


def prefetch(
    steps: Iterable[tuple[int, Indices]], load: Callable[[Indices, int], Tensors], device: "torch.device"
) -> Iterator[tuple[int, Indices, Tensors]]:
    """Load the tensors of training steps a few steps ahead, and hand them over on ``device``.

    For a GPU several steps are loaded at the same time; copies go through pinned memory and do not block.

    Args:
        steps: number and frame indices of each step.
        load: (frame indices of a step, its number) → tensors in host memory; called in several threads.
        device: where the step computes.
    """
    on_gpu = device.type == "cuda"

    def read(indices: Indices, step: int) -> Tensors:
        tensors = load(indices, step)
        return {name: t.pin_memory() for name, t in tensors.items()} if on_gpu else tensors

    def loaded() -> Iterator[tuple[int, Indices, Tensors]]:
        # On a CPU the step itself needs the cores.
        at_once = STEPS_AHEAD if on_gpu else 1
        with ThreadPoolExecutor(at_once, "load") as pool:
            waiting: deque[tuple[int, Indices, Future[Tensors]]] = deque()
            for step, indices in steps:
                waiting.append((step, indices, pool.submit(read, indices, step)))
                if len(waiting) == at_once:
                    first, own, tensors = waiting.popleft()
                    yield first, own, tensors.result()
            for first, own, tensors in waiting:
                yield first, own, tensors.result()

    with closing(ahead(loaded(), STEPS_AHEAD - 1, "prefetch")) as ready:
        for step, indices, tensors in ready:
            yield step, indices, {name: t.to(device, non_blocking=True) for name, t in tensors.items()}


def in_parts(pool: ThreadPoolExecutor, work: Callable[[list[S]], Iterable[T]], items: list[S], parts: int) -> list[T]:
    """Do ``work`` on at most ``parts`` parts of ``items`` at the same time, and join the results in order.

    For work that releases the interpreter's lock, as OpenCV's does.
    """
    length = max(2, -(-len(items) // parts))
    pieces = [items[start : start + length] for start in range(0, len(items), length)]
    done = map(work, pieces) if len(pieces) == 1 else pool.map(work, pieces)
    return [result for results in done for result in results]
