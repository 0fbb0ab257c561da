"""Dependence on single clips: m clips of each class are left out, repeatedly."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_table
from colocam.lab.study.study_figures import Boxes
from colocam.lab.study.workplace import Lab

LEFT_OUT = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def without(m: int) -> Trained:
    """CoLo-CAM without m clips of each tag; each repetition samples others."""
    return Trained("colocam", (f"localizer.leave_out={m}",), draws=True)


def possible(lab: Lab) -> list[int]:
    """Values of m that leave at least one clip of every tag."""
    fewest = lab.fewest_clips()
    return [m for m in lab.few(LEFT_OUT) if m < fewest]


def cells(lab: Lab) -> Sequence[Cell]:
    """One decoder per m and sample."""
    return [without(m) for m in possible(lab)]


def read(lab: Lab, results: Results) -> Findings:
    """Mean ± std over the samples, and a box plot."""
    numbers, ms = published("stability"), lab.few(LEFT_OUT)
    columns = {
        f"published, {version}": [f"{mean:.2f} ± {std:.2f}" for mean, std in (numbers[version][m] for m in ms)]
        for version in ("v1.0", "v2.2")
    }
    table = corloc_table(results, [(f"m = {m}", without(m)) for m in ms], columns, "left out")
    boxes = Boxes(
        "m: clips of each class left out",
        "CorLoc, %, oracle-per-class",
        tuple(map(float, ms)),
        tuple(results.corloc(without(m)) for m in ms),
        tuple(
            (f"published, {version}: mean ± std", tuple(tuple(numbers[version][m]) for m in ms))
            for version in ("v1.0", "v2.2")
        ),
    )
    run = possible(lab)
    left = [f"{m}" for m in ms if m not in run]
    notes = [f"Not run: m = {', '.join(left)}; a tag has only {lab.fewest_clips()} training clips."] if left else []
    return Findings([table], [boxes], notes)


STUDY = Study(
    "stability",
    "How much do single clips matter?",
    cells,
    read,
    (
        "A seed here is a sample of clips; the seed of the training is always 0. The paper has 30 samples: --seeds 30.",
        "Clips are left out of stage 2 only; all samples share one classifier. The paper does not say whether its do.",
    ),
    values=LEFT_OUT,
)
