"""Compiled functions, for loops over pixels that no array operation covers.

An installed package has them in C (``colocam.native``): they need neither Numba nor the time that it takes to compile.
Where that module was not built, as in a source tree, Numba compiles the Python functions themselves when they are
called first, and caches the result on disk.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from colocam.utils.extras import not_installed

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    from colocam.native import kernels as _kernels  # type: ignore[attr-defined]
except ImportError:
    _kernels = None


_sources: dict[Any, Callable[..., Any]] = {}
"""Functions in C → their Python twins."""


def compiled(function: Function, **options: Any) -> Function:  # noqa: ANN401 - of Numba
    """The function compiled; it runs without the interpreter's lock.

    Args:
        function: in C it has the name of its module and its own, joined by ``_``.
        options: further ones of ``numba.njit``.
    """
    native = getattr(_kernels, f"{function.__module__.rpartition('.')[2]}_{function.__name__}", None)
    if native is not None:
        _sources[native] = function
        return cast("Function", native)
    if _kernels is not None:  # Numba takes long to import, and only tests and benchmarks call this
        return cast("Function", _Late(function, options))
    return cast("Function", _jit(function, options))


def source_of(function: Any) -> Callable[..., Any]:  # noqa: ANN401 - compiled in one of three ways
    """The Python function that was given to :func:`compiled`, to compare both."""
    if isinstance(function, _Late):
        return function.function
    if function in _sources:
        return _sources[function]
    return cast("Callable[..., Any]", function.py_func)


def _jit(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        from numba import njit  # noqa: PLC0415 - not needed where the package was built with a C compiler
    except ModuleNotFoundError as error:
        raise not_installed(error, "colocam without its compiled part") from error
    return cast("Callable[..., Any]", njit(nogil=True, cache=True, **options)(function))


class _Late:
    """A function that Numba compiles at its first call, with the functions that it calls."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self.made: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401 - whatever the function takes
        return self.resolve()(*args)

    def resolve(self) -> Callable[..., Any]:
        """The compiled function."""
        if self.made is None:
            scope = self.function.__globals__
            for name in set(self.function.__code__.co_names) & scope.keys():
                if isinstance(scope[name], _Late):
                    scope[name] = scope[name].resolve()
            self.made = _jit(self.function, self.options)
        return self.made
