"""Checkpoints: a JSON file and the tensor file that it names. The JSON is renamed last, so that both always match."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save
from torch import Tensor

from colocam.errors import ColocamError, first_line
from colocam.utils.files import atomic_path, write_json
from colocam.utils.json_text import parse_json


def save_tensors(target: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file, atomically; through bytes, since safetensors' own writer hides errors of the disk."""
    data = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)


def save_checkpoint(folder: Path, name: str, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write ``folder/name.json`` and the tensor file it names; the previous pair stays valid until then."""
    weights = folder / f"{name}-{state['step']:07d}.safetensors"
    save_tensors(weights, tensors)
    write_json(folder / f"{name}.json", {**state, "weights": weights.name})
    for stale in folder.glob(f"{name}-*.safetensors"):
        if stale != weights:
            stale.unlink(missing_ok=True)


@contextmanager
def explain_damage(folder: Path, name: str) -> Iterator[None]:
    """Turn what a damaged checkpoint causes into an error that names it; tensors and values fail in many ways."""
    try:
        yield
    except Exception as error:
        path = folder / f"{name}.json"
        raise ColocamError(
            f"{path} is damaged ({first_line(error)}): delete {folder} to train this part again"
        ) from error


def load_checkpoint(folder: Path, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The tensors (on the CPU) and state of ``folder/name``, or None where there is none."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    with explain_damage(folder, name):
        state: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
        return load_file(folder / state["weights"]), state
