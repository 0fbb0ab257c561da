"""Definition of a study: its cells, and the tables and figures made of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from colocam.lab.study.cells import Cell
from colocam.lab.study.results import Columns, Findings, Results, Rows, corloc_findings
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
        values: what it varies, where a user may choose fewer values.
    """

    name: str
    title: str
    cells: Callable[[Lab], Sequence[Cell]]
    read: Callable[[Lab, Results], Findings]
    notes: tuple[str, ...] = ()
    values: tuple[float, ...] = ()


def rows_study(
    name: str, title: str, rows: Rows, published: Columns, notes: tuple[str, ...] = (), first: str = "method"
) -> Study:
    """A study with one cell per row: CorLoc of each beside the published columns, as table and bars.

    Args:
        name: see :class:`Study`.
        title: see :class:`Study`.
        rows: title and cell of each row; a smoke test runs all of them.
        published: title and entries of the published columns.
        notes: see :class:`Study`.
        first: title of the first column.
    """
    return Study(
        name,
        title,
        cells=lambda _: [cell for _, cell in rows],
        read=lambda _, results: corloc_findings(results, rows, published, first),
        notes=notes,
    )
