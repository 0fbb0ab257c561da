"""Which of the processes that ``torchrun`` started this is."""

import os
from typing import NamedTuple

from colocam.errors import ColocamError


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
