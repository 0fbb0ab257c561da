"""Do the same work on many items at the same time, in threads; for work that releases the interpreter's lock."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from colocam.utils.device import cores

THREADS = min(8, cores())
"""The other stages of a pipeline need cores too."""

Result = TypeVar("Result")


def parallel_map(work: Callable[..., Result], *columns: Iterable[object]) -> list[Result]:
    """``work`` for each row of ``columns``, in order; the first error is raised."""
    return list(_pool().map(work, *columns))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "parallel")
