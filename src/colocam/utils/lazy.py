"""Import the public names of a package on first use: importing the package then imports neither torch nor FFmpeg."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from colocam.utils.extras import EXTRAS, not_installed


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        homes: module that defines each lazy name.
    """

    def find(name: str) -> Any:  # noqa: ANN401 - the name may stand for anything
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRAS:
                raise
            line = str(not_installed(error, f"{package}.{name}"))
            raise ModuleNotFoundError(line, name=error.name) from None

    def names() -> list[str]:
        module = vars(sys.modules[package])
        return sorted({*homes, *module.get("__all__", ()), *(name for name in module if name.startswith("__"))})

    return find, names
