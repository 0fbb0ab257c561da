"""Stages that work at the same time: each is a generator, with a thread and a short queue between two of them."""

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from typing import Any, NamedTuple, TypeVar

import numpy.typing as npt

T = TypeVar("T")
B = TypeVar("B", list[Any], npt.NDArray[Any])


class _End(NamedTuple):
    """After the last item: what the stage raised, if it did."""

    error: BaseException | None


def ahead(items: Iterable[T], size: int, name: str) -> Generator[T, None, None]:
    """Yield ``items``, made in a thread of their own, at most ``size`` + 1 of them before they are asked for.

    An item is handed on as soon as it is made. What the stage raises is raised here, after the items before it. When
    this generator ends or is closed, so is ``items``, and the thread has ended: the stage's present item is finished
    first. It is a daemon, so that a second Ctrl-C is obeyed even if that item never comes.

    Args:
        items: the stage.
        size: items that may wait, 1 or more.
        name: of the thread.
    """
    waiting: Queue[T | _End] = Queue(size)
    closing = threading.Event()

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                waiting.put(item)
                if closing.is_set():
                    break
        except BaseException as raised:  # noqa: BLE001 - it is raised again where somebody listens
            error = raised
        if isinstance(items, Generator):
            items.close()
        if not closing.is_set():
            waiting.put(_End(error))

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        closing.set()
        # The stage may be waiting for room. It puts one thing at the most once it is asked to end.
        with suppress(Empty):
            while True:
                waiting.get_nowait()
        thread.join()


def in_parts(pool: ThreadPoolExecutor, work: Callable[[B], Iterable[T]], batch: B, parts: int) -> list[T]:
    """Do ``work`` on at most so many ``parts`` of a batch at the same time, and join what it gives in order.

    For work that releases the interpreter's lock, as OpenCV's does.
    """
    length = max(2, -(-len(batch) // parts))
    pieces: list[B] = [batch[start : start + length] for start in range(0, len(batch), length)]
    done = map(work, pieces) if len(pieces) == 1 else pool.map(work, pieces)
    return [one for piece in done for one in piece]
