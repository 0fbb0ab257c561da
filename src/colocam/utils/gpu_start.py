"""Start the driver of a GPU and Triton while torch is imported, which takes seconds and one core."""

import ctypes
from contextlib import suppress
from importlib.util import find_spec
from threading import Thread


def start_gpu(device: str | None) -> None:
    """Begin, in a thread, what torch and Triton will do or ask for later; without that GPU nothing happens.

    Args:
        device: ``cuda`` or ``cuda:<index>``; None: the first GPU.
    """
    number = (device or "").partition(":")[2]
    index = int(number) if number.isdecimal() else 0
    Thread(target=_start, args=[index], name="start-gpu", daemon=True).start()


def _start(index: int) -> None:
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
