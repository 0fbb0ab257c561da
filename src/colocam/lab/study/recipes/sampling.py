"""Sampling of the frames of a sequence: adjacent, around the middle, or over the whole clip."""

from colocam.lab.study.cells import Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import rows_study

SCHEMES = ("adjacent", "gaussian", "interval")

STUDY = rows_study(
    "sampling",
    "Which frames of a clip form a sequence?",
    [(scheme, Trained("colocam", (f"localizer.sampler={scheme}",))) for scheme in SCHEMES],
    {"published, v1.0": [published("sampling")["v1.0"][scheme] for scheme in SCHEMES]},
    first="sampler",
)
