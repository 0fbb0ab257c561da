"""Where to compute: cores, threads and memory of this process, its place among several, the device, ONNX sessions."""

import ctypes
import gc
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from colocam.errors import ArgumentError, ColocamError, first_line

if TYPE_CHECKING:
    import onnxruntime
    import torch


Result = TypeVar("Result")

_share: int | None = None
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of ``mallopt`` (glibc)."""
MIB = 2**20
KEPT_BYTES = 64 * MIB
OWN_MAPPING_BYTES = 32 * MIB
"""The most that older versions of glibc allow."""


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
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return int(stated) if stated.isdecimal() and int(stated) > 0 else cores()


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


class Place(NamedTuple):
    """One of several processes.

    Attributes:
        rank: index among all processes.
        world: number of processes.
        local: index among those of this machine.
    """

    rank: int
    world: int
    local: int


def place() -> Place:
    """The place of this process according to the environment variables of ``torchrun``."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return Place(0, 1, 0)
    try:
        return Place(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")))
    except (KeyError, ValueError) as error:
        raise ColocamError(
            "WORLD_SIZE is set, but RANK, WORLD_SIZE and LOCAL_RANK are not all numbers: start with torchrun, "
            "or unset WORLD_SIZE"
        ) from error


def is_first() -> bool:
    """Whether this process writes files and reports for all."""
    return place().rank == 0


def parallel_map(work: Callable[..., Result], *columns: Iterable[object]) -> list[Result]:
    """``work`` for each row of ``columns``, in order; the first error is raised."""
    return list(_pool().map(work, *columns))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, cores()), "parallel")  # the other stages of a pipeline need cores too


@contextmanager
def without_collections() -> Iterator[None]:
    """Let Python not look for garbage within this block: a tenth of the time that large libraries take to import."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def keep_freed_memory(kept: int = KEPT_BYTES, own_mapping: int = OWN_MAPPING_BYTES) -> None:
    """Let this process keep freed memory; does nothing with other C libraries than glibc.

    By default glibc gives the memory of an image back to the kernel, and each page of the next image is a page fault:
    0.3 ms a frame of 640×360.

    Args:
        kept: bytes that it keeps at most, below 2 GiB.
        own_mapping: blocks of more bytes are given back whatever it keeps.
    """
    with suppress(OSError, AttributeError, TypeError):  # no such function
        set_option = ctypes.CDLL(None).mallopt
        set_option(M_TRIM_THRESHOLD, kept)
        if not set_option(M_MMAP_THRESHOLD, own_mapping):
            set_option(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES)


def keep_activations() -> None:
    """Let this process keep the memory of activations: of a pass on a CPU, page faults take up to half the time."""
    keep_freed_memory(1024 * MIB, 1024 * MIB)


_FATAL_ONLY = 4
"""Other messages come as exceptions, which become one line of ours."""


def open_session(
    path: Path, what: str, remedy: str | None = None, share: int | None = None
) -> "onnxruntime.InferenceSession":
    """Open ``path``; errors call it ``what`` and end with the ``remedy``, if there is one.

    ``share`` is the number of threads of one pass; None: all.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - loads slowly
    except ImportError as error:
        raise ColocamError(f"onnxruntime, which {path} needs, is not installed: pip install onnxruntime") from error
    onnxruntime.set_default_logger_severity(_FATAL_ONLY)  # its allocator has no other
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.intra_op_num_threads = share or threads()
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base
        reason = f": {first_line(error)}" if remedy is None else f" ({first_line(error)}): {remedy}"
        raise ColocamError(f"onnxruntime cannot open {what}{reason}") from error


def start_gpu(device: str | None) -> None:
    """Start the driver of a GPU and Triton in a thread while torch is imported, which takes seconds and one core.

    Without that GPU nothing happens.

    Args:
        device: ``cuda`` or ``cuda:<index>``; None: the first GPU.
    """
    number = (device or "").partition(":")[2]
    index = int(number) if number.isdecimal() else 0
    Thread(target=_start_gpu, args=[index], name="start-gpu", daemon=True).start()


def _start_gpu(index: int) -> None:
    if _make_context(index) and find_spec("triton") is not None:
        # Triton reads and hashes its own 400 MB before it loads or compiles the first kernel of a process.
        with suppress(ImportError, OSError):
            from triton.runtime.cache import triton_key  # noqa: PLC0415 - no part of a light installation

            triton_key()


def _make_context(index: int) -> bool:
    """Make the context of a GPU, which torch will find; whether there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    device, context = ctypes.c_int(), ctypes.c_void_p()
    return bool(
        driver.cuInit(0) == 0
        and driver.cuDeviceGet(ctypes.byref(device), index) == 0
        and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    )
