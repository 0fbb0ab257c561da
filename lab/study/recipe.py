"""Definition of a study: published numbers, results of its cells, and the tables and figures made of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from colocam.config import parse_yaml
from colocam.evaluation.metrics.protocols import PROTOCOLS, PUBLISHED_PROTOCOL
from colocam.evaluation.result import is_number
from colocam.report.gallery import Group
from lab.study.cells import Cell, Result
from lab.study.figures import Bars, Drawing, Series
from lab.study.tables import Entry, Measured, Table, order_note
from lab.study.workplace import Lab


@cache
def _all() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("published.yaml")
    return parse_yaml(path.read_text(encoding="utf-8"), path.name)


def published(study: str) -> dict[str, Any]:
    """Published data of a study: ``source`` (table or figure and its label), ``says``, and the numbers."""
    return _all()[study]


def of_paper(study: str) -> str:
    """Which table or figure of the paper a study repeats, and what the paper says of it."""
    found = _all().get(study)
    return "Not in the paper." if found is None else f"{found['source']} of the paper. The paper: {found['says']}"


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


def corloc_findings(results: Results, rows: Rows, published: Columns, first: str = "method") -> Findings:
    """Table, bars, and whether our ranking of the rows is the published one: the output of most studies.

    The bars show our results under the protocols of ``SHOWN`` beside the published numbers.
    """
    names, cells = zip(*rows, strict=True)
    series = [Series(f"ours, {protocol}", [results.corloc(cell, protocol) for cell in cells]) for protocol in SHOWN]
    series += [Series(title, column, published=True) for title, column in published.items()]
    return Findings(
        [corloc_table(results, rows, published, first)],
        [Bars("CorLoc, %", names, tuple(series))],
        order_note(names, [results.corloc(cell) for cell in cells], published),
    )


@dataclass(frozen=True, slots=True)
class Study:
    """A table or a figure of the paper that can be repeated, or a question of our own.

    Attributes:
        name: on the command line, and in ``published.yaml`` if it is of the paper.
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
    name: str,
    title: str,
    rows: dict[str, tuple[str, Cell]],
    versions: Sequence[str],
    notes: tuple[str, ...] = (),
    first: str = "method",
) -> Study:
    """A study with one cell per row: CorLoc of each beside the published columns, as table and bars.

    Args:
        name: see :class:`Study`.
        title: see :class:`Study`.
        rows: key in ``published.yaml`` → title and cell; a smoke test runs all of them.
        versions: of YouTube-Objects for which there are published numbers.
        notes: see :class:`Study`.
        first: title of the first column.
    """
    columns = {f"published, {version}": [published(name)[version][key] for key in rows] for version in versions}
    found = list(rows.values())
    return Study(
        name,
        title,
        cells=lambda _: [cell for _, cell in found],
        read=lambda _, results: corloc_findings(results, found, columns, first),
        notes=notes,
    )
