"""Tensors: checkpoints, hashes, random generators, errors that name NaN or infinity, copies to and from a GPU.

Tests: tests/utils/test_checkpoint.py, tests/utils/test_randomness.py.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from colocam.errors import ColocamError, first_line
from colocam.utils.files import atomic_path, parse_json, write_json


def content_hash(module: nn.Module) -> str:
    """SHA-256 of a module's names and weights; the device and the memory layout do not matter."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode() + str(tensor.dtype).encode() + str(tuple(tensor.shape)).encode())
        digest.update(
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        )
    return digest.hexdigest()


def generator(seed: int, purpose: str, *counters: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator whose state depends only on the arguments."""
    entropy = [seed, zlib.crc32(purpose.encode()), *counters]
    state = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
    return torch.Generator(device=device).manual_seed(state & (2**63 - 1))


def require_finite(where: str, **tensors: Tensor) -> None:
    """Raise a ColocamError if a tensor has NaN or infinity: its name, how many values, and the index of the first.

    Only tensors in host memory are checked: on CUDA this would make the host wait for the device. There, NaN or
    infinity in the input of a loss or product makes the result non-finite.
    """
    for name, tensor in tensors.items():
        if not tensor.is_cpu or not tensor.is_floating_point():
            continue
        bad = ~torch.isfinite(tensor)
        if bad.any():
            count, index = int(bad.sum()), tuple(bad.nonzero()[0].tolist())
            raise ColocamError(
                f"{where}: {name} has {count} NaN or infinite values, the first at index {index}; "
                f"check how {name} was computed, or lower the learning rate"
            )


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


def upload(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """The array on a device; with a GPU neither the copy nor what was launched before it is waited for."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def download(*tensors: Tensor) -> Callable[[], list[npt.NDArray[Any]]]:
    """Start copying tensors to host memory; the returned function waits for them, and for nothing launched later."""
    if tensors[0].device.type != "cuda":
        return lambda: [tensor.numpy() for tensor in tensors]
    host = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in tensors]
    for there, here in zip(host, tensors, strict=True):
        there.copy_(here, non_blocking=True)
    copied = mark_end(tensors[0].device)

    def wait() -> list[npt.NDArray[Any]]:
        copied.synchronize()
        return [tensor.numpy() for tensor in host]

    return wait


def mark_end(device: torch.device) -> torch.cuda.Event:
    """An event that the GPU reaches when all that was launched on it until now is done."""
    event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event
