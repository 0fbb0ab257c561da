"""Functions as machine code, for loops over pixels that no array operation has."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code that runs without the interpreter's lock, kept on disk for the next process."""
    return cast("Function", njit(nogil=True, cache=True)(function))
