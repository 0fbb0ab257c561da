"""Constant and adaptive weight of the colour term against the number n of frames."""

import math
from collections.abc import Sequence

from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.recipes.frames import FRAMES
from colocam.lab.study.results import Findings, Results, corloc_table
from colocam.lab.study.study_figures import Lines, Series
from colocam.lab.study.study_tables import Measured, Table
from colocam.lab.study.workplace import Lab


def adaptive(n: int) -> Trained:
    """λ_c as configured, R_c divided by its magnitude."""
    return Trained("colocam", (f"localizer.frames={n}", "localizer.losses.weighting=adaptive"))


def constant(n: int, weight: float) -> Trained:
    """R_c times one small constant for all n."""
    changes = (f"localizer.frames={n}", "localizer.losses.weighting=constant", f"localizer.losses.coloc={weight:.6g}")
    return Trained("colocam", changes)


def constant_weight(lab: Lab) -> float:
    """The constant that equals the adaptive weight where |R_c| is the paper's at n = 2.

    R_c sums over pairs of pixels, so its magnitude at 224² is scaled to the frames here.
    """
    config = lab.config()
    magnitude = published("adaptive")["energy"][2] * (config.frames.crop / 224) ** 4
    return float(config.localizer.losses.coloc / magnitude)


def cells(lab: Lab) -> Sequence[Cell]:
    """Both weights at each n."""
    weight = constant_weight(lab)
    return [cell for n in lab.few(FRAMES) for cell in (constant(n, weight), adaptive(n))]


def read(lab: Lab, results: Results) -> Findings:
    """Two curves of CorLoc, and log₁₀|R_c| under the constant weight on the right axis."""
    steps, weight = lab.few(FRAMES), constant_weight(lab)
    rows = [(f"constant, n = {n}", constant(n, weight)) for n in steps]
    rows += [(f"adaptive, n = {n}", adaptive(n)) for n in steps]
    energies = [_log_energy(results.value(constant(n, weight), "coloc"), weight) for n in steps]
    theirs = [math.log10(e) if (e := published("adaptive")["energy"].get(n)) else None for n in steps]
    here = (lab.config().frames.crop / 224) ** 4
    scaled = [value + math.log10(here) if value is not None else None for value in theirs]
    main = corloc_table(results, rows, {})
    energy = Table(
        "energy",
        "log₁₀|R_c|, mean over the training steps of the constant weight; published: at 224²",
        ("frames", "ours", "published", "published, scaled to the frames here"),
        tuple((f"n = {n}", *row) for n, *row in zip(steps, energies, theirs, scaled, strict=True)),
        digits=2,
    )
    series = (
        Series("constant", [results.corloc(constant(n, weight)) for n in steps]),
        Series("adaptive", [results.corloc(adaptive(n)) for n in steps]),
        Series("log₁₀|R_c|", energies, right=True),
    )
    note = f"Constant weight {weight:.3g}: the adaptive one over the paper's |R_c| at n = 2, scaled to the frames here."
    lines = Lines("frames n", "CorLoc, %, oracle-per-class", tuple(map(float, steps)), series, right="log₁₀|R_c|")
    return Findings([main, energy], [lines], [note])


def _log_energy(term: Measured | None, weight: float) -> Measured | None:
    if term is None or min(map(abs, term.values)) == 0:
        return None
    return Measured(tuple(math.log10(abs(value) / weight) for value in term.values))


STUDY = Study(
    "adaptive",
    "Is a constant weight enough?",
    cells,
    read,
    ("The paper does not give its constant; a single frame (n = 1) has no colour term under either weight.",),
    values=FRAMES,
)
