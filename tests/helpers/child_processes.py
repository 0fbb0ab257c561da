"""The processes that a test has started, as the kernel lists them (Linux)."""

import os
from contextlib import suppress
from pathlib import Path


def alive(process):
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    return _state_and_parent(process)[0] not in {"", "Z"}


def children(word=""):
    """Running children of this process whose command line contains a word; they may end at any moment."""
    listed = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    own = [one for one in listed if _state_and_parent(one)[1] == os.getpid() and alive(one)]
    return [one for one in own if word.encode() in _command_line(one)]


def _state_and_parent(process):
    with suppress(FileNotFoundError, ProcessLookupError):
        state, parent = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:2]
        return state, int(parent)
    return "", 0


def _command_line(process):
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""
