"""How much a result hangs on single clips: m of each class are left out, again and again."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results, corloc_table
from colocam.lab.study.study_figures import Boxes
from colocam.lab.study.workplace import Lab

LEFT_OUT = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def without(m: int) -> Trained:
    """CoLo-CAM without m clips of each tag; each repetition draws others."""
    return Trained("colocam", (f"localizer.leave_out={m}",), draws=True)


def possible(lab: Lab) -> list[int]:
    """Those m that leave every tag a clip."""
    fewest = lab.fewest_clips()
    return [m for m in lab.few(LEFT_OUT) if m < fewest]


def cells(lab: Lab) -> Sequence[Cell]:
    """One decoder per m and draw."""
    return [without(m) for m in possible(lab)]


def read(lab: Lab, results: Results) -> Findings:
    """Mean ± std over the draws, and a box plot."""
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
    "How much hangs on single clips?",
    cells,
    read,
    (
        "A seed here is a draw of clips; the training's own seed is always 0. The paper draws 30 times: --seeds 30.",
        "Clips are left out of stage 2; all draws share one classifier. The paper does not say whether its own do.",
    ),
)
