"""F-CAM, TCAM and CoLo-CAM: gain from several frames."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cam, Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_findings
from colocam.lab.study.workplace import Lab

ROWS: dict[str, tuple[str, Cell]] = {
    "layercam": ("LayerCAM", Cam("layercam")),
    "fcam": ("F-CAM", Trained("fcam")),
    "tcam": ("TCAM", Trained("tcam")),
    "colocam": ("CoLo-CAM", Trained("colocam")),
}


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """One decoder per method, all on one classifier."""
    return [cell for _, cell in ROWS.values()]


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001
    """CorLoc of each method."""
    numbers = published("temporal")
    columns = {f"published, {version}": [numbers[version][key] for key in ROWS] for version in ("v1.0", "v2.2")}
    return corloc_findings(results, list(ROWS.values()), columns)


STUDY = Study(
    "temporal",
    "What do several frames contribute?",
    cells,
    read,
    (
        "F-CAM's and TCAM's seeds (one pixel of each kind) and maps are as published.",
        "CoLo-CAM's seeds, colour mean and focus are those of the configuration; the study losses has its term alone.",
        "The paper has two data sets: run this study once on each.",
    ),
)
