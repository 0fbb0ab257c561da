"""Compile functions with Numba, for loops over pixels that no array operation covers."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function; it runs without the interpreter's lock and is cached on disk."""
    return cast("Function", njit(nogil=True, cache=True)(function))
