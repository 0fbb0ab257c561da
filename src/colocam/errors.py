"""Errors that a person can act on: one line that names the file, the value and the remedy."""


class ColocamError(Exception):
    """Bad input or a state that the user can mend; the command line prints its text as one line and exits with 1."""


class InterruptedRunError(ColocamError):
    """The user stopped a run; everything up to the last finished step is saved and the same command continues it."""


def first_line(error: BaseException) -> str:
    """What another library's error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
