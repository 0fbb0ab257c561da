"""Reuse freed memory instead of asking the kernel for it again."""

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of ``mallopt`` (glibc)."""
MIB = 2**20
KEPT_BYTES = 64 * MIB
OWN_MAPPING_BYTES = 32 * MIB
"""The most that glibc allows."""


def keep_freed_memory() -> None:
    """Let this process keep up to 64 MiB of freed memory; does nothing with other C libraries than glibc.

    By default glibc gives the memory of an image back to the kernel, and each page of the next image is a page fault:
    0.3 ms a frame of 640×360.
    """
    with suppress(OSError, AttributeError, TypeError):  # no such function, or no handle of the process on Windows
        set_option = ctypes.CDLL(None).mallopt
        set_option(M_TRIM_THRESHOLD, KEPT_BYTES)
        set_option(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES)
