"""CLIP-ES in nine variants: source of the class, list of backgrounds, refinement."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cell
from colocam.lab.study.clip_cells import ClipRow
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_findings
from colocam.lab.study.workplace import Lab


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
