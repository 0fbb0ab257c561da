"""CorLoc against the number n of frames in a sequence."""

from collections.abc import Callable, Sequence

from colocam.evaluation.metrics.protocols import PUBLISHED_PROTOCOL
from colocam.lab.study.cells import Cell, Trained
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import SHOWN, Findings, Results, corloc_table
from colocam.lab.study.study_figures import Lines, Series
from colocam.lab.study.study_tables import Measured
from colocam.lab.study.workplace import Lab

FRAMES = (1, 2, 4, 6, 8, 12, 18)


def colocam(n: int) -> Trained:
    """CoLo-CAM on sequences of n frames; a single one has no colour term."""
    return Trained("colocam", (f"localizer.frames={n}",))


def tcam(n: int) -> Trained:
    """TCAM with seeds from the maximum over n CAMs: F-CAM for n = 1, the published TCAM for n = 2."""
    return Trained("tcam") if n == 2 else Trained("fcam", (f"localizer.pool={n - 1}",))


def cells(lab: Lab) -> Sequence[Cell]:
    """Both methods at each n."""
    return [make(n) for n in lab.few(FRAMES) for make in (tcam, colocam)]


def read(lab: Lab, results: Results) -> Findings:
    """A curve for each method."""
    steps = lab.few(FRAMES)
    numbers = published("frames")["v1.0"]
    rows = [(f"{name}, n = {n}", make(n)) for name, make in (("TCAM", tcam), ("CoLo-CAM", colocam)) for n in steps]
    theirs = [None] * len(steps) + [numbers["colocam"].get(n) for n in steps]
    series = [
        Series(f"{name}, {protocol}", [results.corloc(make(n), protocol) for n in steps])
        for name, make in (("CoLo-CAM", colocam), ("TCAM", tcam))
        for protocol in SHOWN
    ]
    series.append(Series("CoLo-CAM, published (v1.0)", theirs[len(steps) :], published=True))
    return Findings(
        [corloc_table(results, rows, {"published, v1.0": theirs})],
        [Lines("frames n", "CorLoc, %", tuple(map(float, steps)), tuple(series))],
        [_peak("TCAM", "2", tcam, steps, results), _peak("CoLo-CAM", "4", colocam, steps, results)],
    )


def _peak(name: str, theirs: str, make: Callable[[int], Trained], steps: Sequence[int], results: Results) -> str:
    known = {n: found for n in steps if isinstance(found := results.corloc(make(n)), Measured)}
    best = max(known, key=lambda n: known[n].mean) if known else None
    return f"{name} is best at n = {theirs} in the paper; here at n = {best or '–'} ({PUBLISHED_PROTOCOL})."


STUDY = Study(
    "frames",
    "How many frames per sequence?",
    cells,
    read,
    (
        "An epoch has equally many sequences for every n, a step batch // n of them: a larger n has more steps.",
        "Clips with fewer than n frames give shorter sequences.",
    ),
    values=FRAMES,
)
