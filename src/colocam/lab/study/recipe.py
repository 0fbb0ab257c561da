"""Definition of a study: its cells, and the tables and figures made of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from colocam.lab.study.cells import Cell
from colocam.lab.study.results import Findings, Results
from colocam.lab.study.workplace import Lab


@dataclass(frozen=True, slots=True)
class Study:
    """A table or a figure of the paper that can be repeated.

    Attributes:
        name: on the command line, and in ``published.yaml``.
        title: the question, in one line.
        cells: cells to run for each seed.
        read: makes tables and figures of the results, of which some may be missing.
        notes: differences from the paper, and their reasons.
    """

    name: str
    title: str
    cells: Callable[[Lab], Sequence[Cell]]
    read: Callable[[Lab, Results], Findings]
    notes: tuple[str, ...] = ()
