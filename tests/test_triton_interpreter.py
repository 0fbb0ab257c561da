"""Run the Triton kernels on the CPU, in Triton's interpreter.

Triton reads TRITON_INTERPRET when it is first imported, which another test may have done: hence a process of its own,
and one for all kernels, since importing torch takes long.
"""

import os
import subprocess
import sys
from pathlib import Path

FILES = [
    Path(__file__).parent / room / name
    for room, name in (
        ("losses/affinity", "interpreted.py"),
        ("boxes", "test_blobs.py"),
        ("inference", "interpreted_kernels.py"),
    )
]


def test_kernels_in_the_interpreter():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *map(str, FILES)]
    done = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
