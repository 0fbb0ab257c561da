"""Stages that work at the same time: each is a generator, with a thread and a short queue between two of them."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy.typing as npt

T = TypeVar("T")
B = TypeVar("B", list[Any], npt.NDArray[Any])


def in_parts(pool: ThreadPoolExecutor, work: Callable[[B], Iterable[T]], batch: B, parts: int) -> list[T]:
    """Do ``work`` on at most so many ``parts`` of a batch at the same time, and join what it gives in order.

    For work that releases the interpreter's lock, as OpenCV's does.
    """
    length = max(2, -(-len(batch) // parts))
    pieces: list[B] = [batch[start : start + length] for start in range(0, len(batch), length)]
    done = map(work, pieces) if len(pieces) == 1 else pool.map(work, pieces)
    return [one for piece in done for one in piece]
