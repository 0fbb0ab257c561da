"""Extensions: modules of others that register CAMs, losses, methods, choosers, label formats, data sets or backbones.

The command line and its workers load those that :data:`VARIABLE` lists, and those of installed packages, which announce
them by an entry point of the group :data:`GROUP`. In a program, import the module, or call :func:`load_extensions`.

Tests: tests/utils/extensions/test_loading.py.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError, first_line, suggest
from colocam.utils.files import stored

VARIABLE = "COLOCAM_EXTENSIONS"
GROUP = "colocam.extensions"
REGISTRIES: dict[str, Mapping[str, Any]] = {}
"""Name, e.g. ``colocam.cams.CAMS`` → registry. A room adds its own when it is imported: rooms below it, which check
names and print titles, do not import it, and an extension cannot register anything without importing it."""


def named_extensions() -> list[str]:
    """What the environment variable ``COLOCAM_EXTENSIONS`` lists, separated as ``PATH`` is; files as absolute paths."""
    names = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    return [str(Path(name).absolute()) if name.endswith(".py") else name for name in names]


def load_extensions(names: Sequence[str] | None = None) -> None:
    """Import the extensions of installed packages, then those named; by default those of :func:`named_extensions`."""
    for name, named_by, load in _extensions(named_extensions() if names is None else names):
        _load(name, named_by, load)


def load_light_extensions() -> None:
    """Import extensions for the completion of the shell, silently; those that fail or need torch are left out."""
    blocked = "torch" not in sys.modules
    if blocked:  # importing it takes seconds, in which the shell would not answer
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        for extension in _extensions(named_extensions()):
            # What an extension prints would be taken for a value.
            with suppress(ColocamError), redirect_stdout(StringIO()):
                _load(*extension)
    finally:
        if blocked:
            del sys.modules["torch"]


def _extensions(names: Sequence[str]) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Name, what named it, and how it is imported: of installed packages, then of ``names``."""
    for point in entry_points(group=GROUP):
        yield point.value, f"entry point {GROUP}", point.load
    for name in names:
        load = partial(_load_file, Path(name)) if name.endswith(".py") else partial(import_module, name)
        yield name, VARIABLE, load


def _load(name: str, named_by: str, load: Callable[[], object]) -> None:
    try:
        load()
    except Exception as error:
        raise ColocamError(f"cannot load the extension {name} ({named_by}): {first_line(error)}") from error


def _load_file(path: Path) -> None:
    path = stored(path)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


HOW = f"(names of extensions need {VARIABLE}, see docs/guide/extend)"


def unknown(name: str, known: Sequence[str]) -> str:
    """What to say after a name that no registry has: the nearest name, and how extensions are loaded."""
    return f"{suggest(name, known) if known else ': register it first'} {HOW}"


def title_of(registry: str, name: str) -> str | None:
    """The title of an entry of ``registry``; None where it has none, or where nothing has imported its room."""
    entry = REGISTRIES.get(registry, {}).get(name)
    return None if entry is None else str(entry.title)
