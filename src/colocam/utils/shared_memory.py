"""Memory that processes share by an open file without a name, so that nothing is left behind however they end."""

import fcntl
import os
import sys
import tempfile
from mmap import mmap


def memory_file(length: int) -> int:
    """An open file of ``length`` zero bytes in memory; the caller closes it.

    Unlike ``/dev/shm`` it has no small limit in containers. On Linux nobody can change its length, which would end a
    process that reads it.
    """
    if sys.platform == "linux":
        file = os.memfd_create("colocam", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, length)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        return file
    with tempfile.TemporaryFile() as unnamed:
        os.ftruncate(unnamed.fileno(), length)
        return os.dup(unnamed.fileno())


def map_file(file: int) -> mmap:
    """The whole of an open file as shared memory; closes the file."""
    try:
        return mmap(file, 0)
    finally:
        os.close(file)
