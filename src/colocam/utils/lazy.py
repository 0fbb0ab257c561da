"""Names of a package that are imported when they are first used: not everybody who enters a room needs torch."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that finds each name in the module that ``homes`` gives for it."""

    def find(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find
