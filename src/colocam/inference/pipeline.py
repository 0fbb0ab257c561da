"""Stages that work at the same time: each is a generator, with a thread and a short queue between two of them."""

import threading
from collections.abc import Generator, Iterable
from contextlib import suppress
from queue import Empty, Queue
from typing import NamedTuple, TypeVar

T = TypeVar("T")


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
