"""F-CAM, TCAM and CoLo-CAM: gain from several frames."""

from colocam.lab.study.cells import Cam, Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import rows_study

ROWS: dict[str, tuple[str, Cell]] = {
    "layercam": ("LayerCAM", Cam("layercam")),
    "fcam": ("F-CAM", Trained("fcam")),
    "tcam": ("TCAM", Trained("tcam")),
    "colocam": ("CoLo-CAM", Trained("colocam")),
}


STUDY = rows_study(
    "temporal",
    "What do several frames contribute?",
    list(ROWS.values()),
    {f"published, {v}": [published("temporal")[v][key] for key in ROWS] for v in ("v1.0", "v2.2")},
    (
        "F-CAM's and TCAM's seeds (one pixel of each kind) and maps are as published.",
        "CoLo-CAM's seeds, colour mean and focus are those of the configuration; the study losses has its term alone.",
        "The paper has two data sets: run this study once on each.",
    ),
)
