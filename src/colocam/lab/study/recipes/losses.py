"""Contribution of each loss term."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cam, Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_findings
from colocam.lab.study.workplace import Lab


def _without(*terms: str) -> Trained:
    return Trained("colocam", tuple(f"localizer.losses.{term}=0" for term in terms))


ROWS: dict[str, tuple[str, Cell]] = {
    "layercam": ("LayerCAM", Cam("layercam")),
    "pl": ("PLs", _without("crf", "size", "coloc")),
    "pl+crf": ("PLs + CRF", _without("size", "coloc")),
    "pl+asc": ("PLs + ASC", _without("crf", "coloc")),
    "pl+asc+crf": ("PLs + ASC + CRF", _without("coloc")),
    "pl+asc+crf+coloc": ("PLs + ASC + CRF + CoLoc", Trained("colocam")),
}


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """One decoder per row."""
    return [cell for _, cell in ROWS.values()]


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001
    """CorLoc of each sum of terms."""
    numbers = published("losses")["v1.0"]
    return corloc_findings(results, list(ROWS.values()), {"published, v1.0": [numbers[key] for key in ROWS]}, "terms")


STUDY = Study(
    "losses",
    "What does each loss term contribute?",
    cells,
    read,
    ("All rows use CoLo-CAM's seeds and post-processing (colour mean, focus); only the terms change.",),
)
