"""Time of the colour term against the number n of frames, on the CPU and on the GPU."""

from collections.abc import Sequence

import torch

from colocam.lab.study.cells import Cell
from colocam.lab.study.clocks import LossTime
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results
from colocam.lab.study.study_figures import Lines, Series
from colocam.lab.study.study_tables import Table
from colocam.lab.study.workplace import Lab

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def devices(lab: Lab) -> list[str]:
    """The CPU, and the GPU if there is one and the CPU was not requested."""
    return ["cpu"] if lab.device == "cpu" or not torch.cuda.is_available() else ["cpu", lab.device or "cuda"]


def timed(lab: Lab, device: str, n: int) -> LossTime:
    """The term on n frames of 224², smaller ones in a smoke test."""
    return LossTime(device, n, lab.config().frames.crop if lab.smoke else 224)


def cells(lab: Lab) -> Sequence[Cell]:
    """Each length on each device."""
    return [timed(lab, device, n) for device in devices(lab) for n in lab.few(LENGTHS)]


def read(lab: Lab, results: Results) -> Findings:
    """A curve for each device."""
    lengths, numbers = lab.few(LENGTHS), published("loss-time")["ms"]
    theirs = [numbers.get(n) for n in lengths]
    ours = {}
    for device in devices(lab):
        name = next((found["device"] for n in lengths for found in results.of(timed(lab, device, n))), device)
        ours[f"ours, {name}, ms"] = [results.value(timed(lab, device, n), "ms") for n in lengths]
    side = lab.config().frames.crop if lab.smoke else 224
    table = Table(
        "table",
        f"Colour term, value and gradient with respect to the maps, one sequence of n frames of {side}², median",
        ("frames", *ours, "published, ms"),
        tuple(
            (f"n = {n}", *(column[place] for column in ours.values()), theirs[place]) for place, n in enumerate(lengths)
        ),
        digits=2,
    )
    series = [*(Series(title, column) for title, column in ours.items()), Series("published", theirs, published=True)]
    lines = Lines("frames n", "milliseconds", tuple(map(float, lengths)), tuple(series), log=True)
    return Findings([table], [lines])


STUDY = Study(
    "loss-time",
    "What does the colour term cost?",
    cells,
    read,
    (
        "Ours: scenes with the statistics of photographs, default tolerance (0.5 % of the exact product).",
        "The published time is of a lattice on CPU and GPU; the paper does not say whether it includes the gradient.",
    ),
)
