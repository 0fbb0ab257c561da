"""Results of the finished cells of a study, and the tables and figures made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colocam.evaluation.metrics.protocols import PROTOCOLS, PUBLISHED_PROTOCOL
from colocam.evaluation.result import is_number
from colocam.lab.study.cells import Cell, Result
from colocam.lab.study.study_figures import Bars, Drawing, Series
from colocam.lab.study.study_tables import Entry, Measured, Table, order_note
from colocam.report.gallery import Group

SHOWN = (PUBLISHED_PROTOCOL, "tags-only")
"""Protocols in figures: the published one, and the one that uses no box."""


@dataclass(slots=True)
class Results:
    """Results by cell and seed, folders of the cells, and reasons of cells that could not run."""

    found: dict[Cell, dict[int, Result]] = field(default_factory=dict)
    folders: dict[Cell, Path] = field(default_factory=dict)
    reasons: dict[Cell, str] = field(default_factory=dict)

    def of(self, cell: Cell) -> list[Result]:
        """Results of the finished seeds, in their order."""
        return [result for _, result in sorted(self.found.get(cell, {}).items())]

    def value(self, cell: Cell, *path: str) -> Measured | None:
        """The number at ``path`` in each seed's result; None where no seed has one."""
        values: list[float] = []
        for result in self.of(cell):
            at: object = result
            for key in path:
                at = at.get(key) if isinstance(at, Mapping) else None
            if is_number(at):
                values.append(float(at))
        return Measured(tuple(values)) if values else None

    def corloc(self, cell: Cell, protocol: str = PUBLISHED_PROTOCOL, tag: str | None = None) -> Measured | None:
        """CorLoc in percent under a protocol: mean over classes, or of one class."""
        return self.value(cell, "corloc", protocol, *(["average"] if tag is None else ["classes", tag]))


@dataclass(frozen=True, slots=True)
class Findings:
    """Output of a study: tables (the main one first), figures, remarks and groups of examples."""

    tables: Sequence[Table]
    drawings: Sequence[Drawing]
    notes: Sequence[str] = ()
    groups: Sequence[Group] = ()


Rows = Sequence[tuple[str, Cell]]
"""Title and cell of each row."""
Columns = Mapping[str, Sequence[Entry]]
"""Title and entries of further columns."""


def corloc_table(results: Results, rows: Rows, published: Columns, first: str = "method") -> Table:
    """One row per cell: CorLoc under each protocol, then the published columns."""
    lines = []
    for place, (name, cell) in enumerate(rows):
        ours = [results.corloc(cell, protocol) for protocol in PROTOCOLS]
        lines.append((name, *ours, *(column[place] for column in published.values())))
    title = "CorLoc in percent, mean over classes; published figures choose the threshold as oracle-per-class does"
    return Table("table", title, (first, *PROTOCOLS, *published), tuple(lines))


def corloc_bars(results: Results, rows: Rows, published: Columns) -> Bars:
    """Bars: our results under the protocols of ``SHOWN`` beside the published numbers."""
    names = tuple(name for name, _ in rows)
    ours = [
        Series(f"ours, {protocol}", tuple(results.corloc(cell, protocol) for _, cell in rows)) for protocol in SHOWN
    ]
    theirs = [Series(title, tuple(column), published=True) for title, column in published.items()]
    return Bars("CorLoc, %", names, (*ours, *theirs))


def corloc_findings(results: Results, rows: Rows, published: Columns, first: str = "method") -> Findings:
    """Table, bars, and whether our ranking of the rows is the published one: the output of most studies."""
    names = [name for name, _ in rows]
    ours = [results.corloc(cell) for _, cell in rows]
    return Findings(
        [corloc_table(results, rows, published, first)],
        [corloc_bars(results, rows, published)],
        order_note(names, ours, published),
    )
