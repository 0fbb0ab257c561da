"""Where to compute: the cores of this process, and the device that a user names."""

import os
from functools import cache
from typing import TYPE_CHECKING

from colocam.errors import ArgumentError

if TYPE_CHECKING:
    import torch


_share: int | None = None


def limit_cores(share: int) -> None:
    """Let this process count on so many cores only; to be called before anything asks for :func:`cores`."""
    global _share  # noqa: PLW0603 - of the process
    _share = share
    cores.cache_clear()


@cache
def cores() -> int:
    """Number of cores that this process may use; ``os.cpu_count`` also counts those that it may not."""
    if _share is not None:
        return _share
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """As many threads as torch uses; by default onnxruntime also counts cores that this process may not use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else cores()


def choose_device(name: str | None) -> "torch.device":
    """The device ``cpu``, ``cuda`` or ``cuda:<index>``; without a name the GPU, if there is one."""
    import torch  # noqa: PLC0415 - counting cores needs no torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ArgumentError("device", f"must be cpu or cuda, got {name}") from error
    if device.type not in {"cpu", "cuda"}:
        raise ArgumentError("device", f"must be cpu or cuda, got {name}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ArgumentError("device", f"{name}: torch finds no such GPU; use cpu, or install a GPU build of torch")
    return device
