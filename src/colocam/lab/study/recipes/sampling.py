"""Sampling of the frames of a sequence: adjacent, around the middle, or over the whole clip."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_findings
from colocam.lab.study.workplace import Lab

SCHEMES = ("adjacent", "gaussian", "interval")


def sampled(scheme: str) -> Trained:
    """CoLo-CAM with one of the samplers."""
    return Trained("colocam", (f"localizer.sampler={scheme}",))


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """One decoder per sampler."""
    return [sampled(scheme) for scheme in SCHEMES]


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001
    """CorLoc of each sampler."""
    numbers = published("sampling")["v1.0"]
    rows = [(scheme, sampled(scheme)) for scheme in SCHEMES]
    return corloc_findings(results, rows, {"published, v1.0": [numbers[scheme] for scheme in SCHEMES]}, "sampler")


STUDY = Study("sampling", "Which frames of a clip form a sequence?", cells, read)
