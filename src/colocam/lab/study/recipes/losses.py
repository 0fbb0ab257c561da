"""Contribution of each loss term."""

from colocam.lab.study.cells import Cam, Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import rows_study


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


STUDY = rows_study(
    "losses",
    "What does each loss term contribute?",
    list(ROWS.values()),
    {"published, v1.0": [published("losses")["v1.0"][key] for key in ROWS]},
    ("All rows use CoLo-CAM's seeds and post-processing (colour mean, focus); only the terms change.",),
    first="terms",
)
