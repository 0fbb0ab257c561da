"""CorLoc against the weight λ_c of the colour term, divided by its own magnitude (adaptive)."""

from collections.abc import Sequence

from colocam.evaluation.metrics.protocols import PUBLISHED_PROTOCOL
from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import SHOWN, Findings, Results, corloc_table
from colocam.lab.study.study_figures import Lines, Series
from colocam.lab.study.workplace import Lab

WEIGHTS = (0.3, 0.5, *range(1, 17))


def weighted(weight: float) -> Trained:
    """CoLo-CAM with the adaptive weight λ_c."""
    return Trained("colocam", ("localizer.losses.weighting=adaptive", f"localizer.losses.coloc={weight}"))


def cells(lab: Lab) -> Sequence[Cell]:
    """One decoder per weight."""
    return [weighted(weight) for weight in lab.few(WEIGHTS)]


def read(lab: Lab, results: Results) -> Findings:
    """One curve."""
    weights = lab.few(WEIGHTS)
    rows = [(f"λ_c = {weight:g}", weighted(weight)) for weight in weights]
    series = tuple(
        Series(f"ours, {protocol}", [results.corloc(cell, protocol) for _, cell in rows]) for protocol in SHOWN
    )
    known = {name: found.mean for name, cell in rows if (found := results.corloc(cell)) is not None}
    best = max(known, key=lambda name: known[name]) if known else "–"
    return Findings(
        [corloc_table(results, rows, {}, "weight")],
        [Lines("λ_c", "CorLoc, %", tuple(map(float, weights)), series)],
        [f"Best in the paper: λ_c between 3 and 7; here: {best} ({PUBLISHED_PROTOCOL})."],
    )


STUDY = Study(
    "lambda",
    "Which weight should the adaptive colour term have?",
    cells,
    read,
    ("0.3 and 0.5 are below the paper's 1 … 16: on other data these are too large (docs/method/colour-term.md).",),
    values=WEIGHTS,
)
