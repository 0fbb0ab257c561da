"""Tables of a study: Markdown for reading, CSV for further use."""

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colocam.utils.tables import csv_cell


@dataclass(frozen=True, slots=True)
class Measured:
    """One number, measured once per seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return statistics.fmean(self.values)

    @property
    def std(self) -> float | None:
        """Standard deviation over seeds (n − 1 in the denominator); None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


Entry = Measured | float | str | None
"""An entry of a table: measured here, published, text, or empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns.

    Attributes:
        name: stem of its file.
        title: what it shows, with unit and protocol.
        columns: names; the first column names the rows.
        rows: one entry per column.
        digits: after the decimal point.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    digits: int = 1

    @property
    def words(self) -> tuple[bool, ...]:
        """Which columns hold text; they are aligned left."""
        return tuple(
            place == 0 or any(isinstance(entry := row[place], str) and entry[:1].isalpha() for row in self.rows)
            for place in range(len(self.columns))
        )

    @property
    def repeated(self) -> bool:
        """Whether anything was measured with several seeds."""
        return any(isinstance(entry, Measured) and len(entry.values) > 1 for row in self.rows for entry in row)


def text(entry: Entry, digits: int = 1) -> str:
    """An entry as text: mean ± std for several seeds."""
    if entry is None:
        return "–"
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Measured):
        spread = "" if entry.std is None else f" ± {entry.std:.{digits}f}"
        return f"{entry.mean:.{digits}f}{spread}"
    return f"{entry:.{digits}f}"


def cells_of(table: Table) -> list[list[str]]:
    """All entries as text, row by row."""
    return [[text(entry, table.digits) for entry in row] for row in table.rows]


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown, below its title."""
    head = "| " + " | ".join(map(_escape, table.columns)) + " |"
    rule = "|" + "|".join("---" if words else "---:" for words in table.words) + "|"
    rows = ["| " + " | ".join(map(_escape, row)) + " |" for row in cells_of(table)]
    return "\n".join([f"**{table.title}**", "", head, rule, *rows, ""])


def to_csv(table: Table) -> str:
    """The table as CSV with all digits; a measured column becomes three: mean, std and number of seeds."""
    measured = [any(isinstance(row[place], Measured) for row in table.rows) for place in range(len(table.columns))]
    header: list[str] = []
    for name, several in zip(table.columns, measured, strict=True):
        header += [name, f"{name}, std", f"{name}, seeds"] if several else [name]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        line: list[object] = []
        for entry, several in zip(row, measured, strict=True):
            if isinstance(entry, Measured):
                line += [entry.mean, entry.std, len(entry.values)]
            else:
                line += [entry, None, None] if several else [entry]
        writer.writerow(["" if value is None else csv_cell(value) for value in line])
    return buffer.getvalue()


def order_note(names: Sequence[str], ours: Sequence[Entry], published: Mapping[str, Sequence[Entry]]) -> list[str]:
    """One sentence per published column: whether our ranking of the rows agrees; rows without both are left out."""
    notes = []
    for title, column in published.items():
        both = [
            (name, mine, float(theirs))
            for name, mine, theirs in zip(names, ours, column, strict=True)
            if isinstance(mine, Measured) and isinstance(theirs, int | float)
        ]
        if len(both) < 2:
            continue
        here = [name for name, _, _ in sorted(both, key=lambda row: row[1].mean)]
        there = [name for name, _, _ in sorted(both, key=lambda row: row[2])]
        verdict = "the same" if here == there else f"{' < '.join(here)}. It DIFFERS{_beyond_spread(both)}"
        notes.append(f"Order by CorLoc, {title}: {' < '.join(there)}; ours (oracle-per-class): {verdict}.")
    return notes


def _beyond_spread(rows: Sequence[tuple[str, Measured, float]]) -> str:
    """Pairs that are reversed by more than √(a² + b²) of their deviations a, b; "" with a single seed."""
    if any(mine.std is None for _, mine, _ in rows):
        return ""
    reversed_pairs = [
        f"{low} above {high}"
        for low, mine, theirs in rows
        for high, other, published in rows
        if theirs < published and mine.mean - other.mean > math.hypot(mine.std or 0, other.std or 0)
    ]
    return f"; beyond the seeds' spread: {', '.join(reversed_pairs) or 'nothing'}"


def _escape(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")
