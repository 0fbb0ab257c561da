"""Load extensions: Python files or modules that register CAMs, losses, label formats or data sets."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from colocam.errors import ColocamError, first_line
from colocam.utils.files import stored

VARIABLE = "COLOCAM_EXTENSIONS"


def named_extensions() -> list[str]:
    """What the environment variable ``COLOCAM_EXTENSIONS`` lists, separated as ``PATH`` is; files as absolute paths."""
    names = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    return [str(Path(name).absolute()) if name.endswith(".py") else name for name in names]


def load_extensions(names: Sequence[str] | None = None) -> None:
    """Import extensions; by default those of :func:`named_extensions`."""
    for name in named_extensions() if names is None else names:
        try:
            _load_file(stored(Path(name))) if name.endswith(".py") else import_module(name)
        except Exception as error:
            raise ColocamError(f"cannot load the extension {name} ({VARIABLE}): {first_line(error)}") from error


def _load_file(path: Path) -> None:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
