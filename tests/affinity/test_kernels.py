"""Triton reads TRITON_INTERPRET when it is first imported, which another test may have done: hence a process."""

import os
import subprocess
import sys
from pathlib import Path


def test_kernels_in_the_interpreter():
    tests = Path(__file__).with_name("interpreted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tests)]
    done = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout
