"""What a study is: its cells, and what is read off them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from colocam.lab.study.cells import Cell
from colocam.lab.study.results import Findings, Results
from colocam.lab.study.workplace import Lab


@dataclass(frozen=True, slots=True)
class Study:
    """A table or a figure of the paper as something to run.

    Attributes:
        name: on the command line, and in ``published.yaml``.
        title: the question, in one line.
        cells: what is run for each seed.
        read: what is read off the results, also where some are missing.
        notes: what is done differently from the paper, and why.
    """

    name: str
    title: str
    cells: Callable[[Lab], Sequence[Cell]]
    read: Callable[[Lab, Results], Findings]
    notes: tuple[str, ...] = ()
