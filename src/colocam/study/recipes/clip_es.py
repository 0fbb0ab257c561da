"""CLIP-ES in nine ways: which class is asked for, with the list of backgrounds, refined."""

from collections.abc import Sequence

from colocam.study.cells import Cell
from colocam.study.clip import ClipRow
from colocam.study.lab import Lab
from colocam.study.published import published
from colocam.study.recipe import Study
from colocam.study.results import Findings, Results, corloc_findings


def _rows() -> list[tuple[str, Cell]]:
    rows: list[tuple[str, Cell]] = []
    for row in published("clip-es")["rows"]:
        cell = ClipRow(row["label"], background=row["background"], refine=row["refine"])
        rows.append((cell.label.removeprefix("CLIP-ES, "), cell))
    return rows


def cells(lab: Lab) -> Sequence[Cell]:
    """All nine rows, two in a smoke test."""
    return [cell for _, cell in lab.few(_rows(), 2)]


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001 - the rows are the paper's
    """CorLoc of each row."""
    numbers = published("clip-es")["rows"]
    columns = {f"published, {version}": [row[version] for row in numbers] for version in ("v1.0", "v2.2")}
    return corloc_findings(results, _rows(), columns, "class, options")


STUDY = Study("clip-es", "What makes CLIP-ES good?", cells, read)
