"""Errors that a user can correct: one line that names the file or argument, the value and the remedy.

Tests: tests/config/test_config.py, tests/cli/test_cli.py.
"""

import errno
from collections.abc import Sequence
from difflib import get_close_matches


class ColocamError(Exception):
    """Bad input or a state that the user can correct; the command line prints it as one line and exits with 1."""


class ArgumentError(ColocamError):
    """A value that an argument cannot have: ``presence must be in 0–1, got 2``; the command line writes ``--presence``.

    Attributes:
        argument: name of the argument in Python.
        problem: what is wrong with its value.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument} {problem}")
        self.argument = argument
        self.problem = problem


class NearChanceError(ColocamError):
    """The class of held-out videos is near chance after stage 1; the command line exits with 3."""


class NotInstalledError(ColocamError, ModuleNotFoundError):
    """A package of an extra is missing."""


class InterruptedRunError(ColocamError):
    """The user stopped a run; it is saved up to the last step, and the same command continues it."""


MEMORY = "memory ran out: close other programs"
_MACHINE = {
    errno.ENOMEM: MEMORY,
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your disk quota is used up: free some space",
    errno.EROFS: "the disk is read-only: make it writable",
    errno.EIO: "the disk cannot be read or written: check it",
    errno.EMFILE: "too many files are open: close other programs",
    errno.ENFILE: "too many files are open: close other programs",
}


def machine_fault(error: BaseException) -> str:
    """What the machine lacked and the remedy, where it is to blame for an error and not what was read; else ""."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.errno in _MACHINE:
            return _MACHINE[at.errno]
        # PyTorch and ONNX Runtime have errors of their own.
        said = str(at).casefold()
        if isinstance(at, MemoryError) or "out of memory" in said or "failed to allocate memory" in said:
            return MEMORY
        at = at.__cause__
    return ""


def suggest(name: str, valid: Sequence[str], prefix: str = "", likeness: float = 0.5) -> str:
    """The nearest valid name, ": did you mean 'X'?", or the list of valid names where none is as near as this."""
    near = get_close_matches(name.lower(), valid, n=1, cutoff=likeness)
    dot = f"{prefix}." if prefix else ""
    return f": did you mean '{dot}{near[0]}'?" if near else f": valid are {', '.join(dot + v for v in valid)}"


def first_line(error: BaseException) -> str:
    """The first line of another library's error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
