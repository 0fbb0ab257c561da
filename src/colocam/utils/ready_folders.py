"""Where the ready models are: in a clone, or in the package ``colocam-models``.

A folder ``models/NAME`` holds ``NAME.onnx``, which runs without torch, and the run folder that training starts from.

Tests: tests/cli/test_ready_models.py, tests/training/test_start.py.
"""

from importlib.util import find_spec
from pathlib import Path

DEFAULT = "youtube-objects-lite0"
"""What commands use where no model is named."""
PACKAGE = "colocam_models"


def ready_folders() -> list[Path]:
    """Where to look, the most important last: a clone that is only the current folder, the package, our own clone."""
    package = find_spec(PACKAGE)
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    return [Path("models"), *map(Path, folders), Path(__file__).parents[3] / "models"]


def ready_run(name: str) -> Path | None:
    """The run folder of a ready model; None where no such model is installed."""
    runs = [folder / name for folder in ready_folders() if (folder / name / "model.json").is_file()]
    return runs[-1] if runs else None
