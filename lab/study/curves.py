"""Studies that vary one number: frames of a sequence, weight of the color term, clips that are left out."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from colocam.evaluation.metrics.protocols import PUBLISHED_PROTOCOL
from lab.study.cells import Cell, Trained
from lab.study.figures import Boxes, Lines, Series
from lab.study.recipe import SHOWN, Findings, Results, Study, corloc_table, published
from lab.study.tables import Measured, Table
from lab.study.workplace import Lab

LENGTHS = (1, 2, 4, 6, 8, 12, 18)
"""Frames n of a sequence."""
WEIGHTS = (0.3, 0.5, *range(1, 17))
LEFT_OUT = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def _best(results: Results, cells: dict[str, Trained]) -> str:
    """Name of the cell with the highest CorLoc."""
    known = {name: found.mean for name, cell in cells.items() if (found := results.corloc(cell)) is not None}
    return f"{max(known, key=lambda name: known[name]) if known else '–'} ({PUBLISHED_PROTOCOL})"


def colocam(n: int) -> Trained:
    """CoLo-CAM on sequences of n frames; a single one has no color term."""
    return Trained("colocam", (f"localizer.frames={n}",))


def tcam(n: int) -> Trained:
    """TCAM with seeds from the maximum over n CAMs: F-CAM for n = 1, the published TCAM for n = 2."""
    return Trained("tcam") if n == 2 else Trained("fcam", (f"localizer.pool={n - 1}",))


def read_frames(lab: Lab, results: Results) -> Findings:
    """A curve for each method."""
    steps, numbers = lab.few(LENGTHS), published("frames")["v1.0"]["colocam"]
    methods: dict[str, Callable[[int], Trained]] = {"TCAM": tcam, "CoLo-CAM": colocam}
    rows = [(f"{name}, n = {n}", make(n)) for name, make in methods.items() for n in steps]
    theirs = [numbers.get(n) for n in steps]
    series = [
        Series(f"{name}, {protocol}", [results.corloc(make(n), protocol) for n in steps])
        for name, make in reversed(methods.items())
        for protocol in SHOWN
    ]
    series.append(Series("CoLo-CAM, published (v1.0)", theirs, published=True))
    notes = [
        f"{name} is best at n = {best} in the paper; here at n = {_best(results, {f'{n}': make(n) for n in steps})}."
        for (name, make), best in zip(methods.items(), (2, 4), strict=True)
    ]
    return Findings(
        [corloc_table(results, rows, {"published, v1.0": [None] * len(steps) + theirs})],
        [Lines("frames n", "CorLoc, %", tuple(map(float, steps)), tuple(series))],
        notes,
    )


FRAMES = Study(
    "frames",
    "How many frames per sequence?",
    lambda lab: [make(n) for n in lab.few(LENGTHS) for make in (tcam, colocam)],
    read_frames,
    (
        "An epoch has equally many sequences for every n, a step batch // n of them: a larger n has more steps.",
        "Clips with fewer than n frames give shorter sequences.",
    ),
    values=LENGTHS,
)


def weighted(weight: float) -> Trained:
    """CoLo-CAM with the adaptive weight λ_c."""
    return Trained("colocam", ("localizer.losses.weighting=adaptive", f"localizer.losses.coloc={weight}"))


def read_lambda(lab: Lab, results: Results) -> Findings:
    """CorLoc against the weight λ_c of the color term, divided by its own magnitude (adaptive)."""
    weights = lab.few(WEIGHTS)
    rows = {f"λ_c = {weight:g}": weighted(weight) for weight in weights}
    series = tuple(
        Series(f"ours, {protocol}", [results.corloc(cell, protocol) for cell in rows.values()]) for protocol in SHOWN
    )
    return Findings(
        [corloc_table(results, list(rows.items()), {}, "weight")],
        [Lines("λ_c", "CorLoc, %", tuple(map(float, weights)), series)],
        [f"Best in the paper: λ_c between 3 and 7; here: {_best(results, rows)}."],
    )


LAMBDA = Study(
    "lambda",
    "Which weight should the adaptive color term have?",
    lambda lab: [weighted(weight) for weight in lab.few(WEIGHTS)],
    read_lambda,
    ("0.3 and 0.5 are below the paper's 1 … 16: on other data these are too large (docs/method/color-term.md).",),
    values=WEIGHTS,
)


def adaptive(n: int) -> Trained:
    """λ_c as configured, R_c divided by its magnitude."""
    return Trained("colocam", (f"localizer.frames={n}", "localizer.losses.weighting=adaptive"))


def constant(n: int, weight: float) -> Trained:
    """R_c times one small constant for all n."""
    changes = (f"localizer.frames={n}", "localizer.losses.weighting=constant", f"localizer.losses.coloc={weight:.6g}")
    return Trained("colocam", changes)


def _scale(lab: Lab) -> float:
    """R_c sums over pairs of pixels: its magnitude at the frames here over that at 224²."""
    return (lab.config().frames.crop / 224) ** 4


def constant_weight(lab: Lab) -> float:
    """The constant that equals the adaptive weight where |R_c| is the paper's at n = 2."""
    magnitude = published("adaptive")["energy"][2] * _scale(lab)
    return float(lab.config().localizer.losses.coloc / magnitude)


def adaptive_cells(lab: Lab) -> Sequence[Cell]:
    """Both weights at each n."""
    weight = constant_weight(lab)
    return [cell for n in lab.few(LENGTHS) for cell in (constant(n, weight), adaptive(n))]


def read_adaptive(lab: Lab, results: Results) -> Findings:
    """Two curves of CorLoc, and log₁₀|R_c| under the constant weight on the right axis."""
    steps, weight = lab.few(LENGTHS), constant_weight(lab)
    rows = [(f"constant, n = {n}", constant(n, weight)) for n in steps]
    rows += [(f"adaptive, n = {n}", adaptive(n)) for n in steps]
    energies = [_log_energy(results.value(constant(n, weight), "coloc"), weight) for n in steps]
    theirs = [math.log10(e) if (e := published("adaptive")["energy"].get(n)) else None for n in steps]
    scaled = [value + math.log10(_scale(lab)) if value is not None else None for value in theirs]
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
    return Findings([corloc_table(results, rows, {}), energy], [lines], [note])


def _log_energy(term: Measured | None, weight: float) -> Measured | None:
    if term is None or min(map(abs, term.values)) == 0:
        return None
    return Measured(tuple(math.log10(abs(value) / weight) for value in term.values))


ADAPTIVE = Study(
    "adaptive",
    "Is a constant weight enough?",
    adaptive_cells,
    read_adaptive,
    ("The paper does not give its constant; a single frame (n = 1) has no color term under either weight.",),
    values=LENGTHS,
)


def without(m: int) -> Trained:
    """CoLo-CAM without m clips of each tag; each repetition samples others."""
    return Trained("colocam", (f"localizer.leave_out={m}",), draws=True)


def _fewest_clips(lab: Lab) -> int:
    """Smallest number of training clips of a tag; fewer than these can be left out."""
    return min(Counter(clip.tag for clip in lab.catalogue.of("train")).values())


def read_stability(lab: Lab, results: Results) -> Findings:
    """Mean ± std over the samples, and a box plot."""
    ms, fewest = lab.few(LEFT_OUT), _fewest_clips(lab)
    theirs = {v: [tuple(published("stability")[v][m]) for m in ms] for v in ("v1.0", "v2.2")}
    columns = {f"published, {v}": [f"{mean:.2f} ± {std:.2f}" for mean, std in pairs] for v, pairs in theirs.items()}
    table = corloc_table(results, [(f"m = {m}", without(m)) for m in ms], columns, "left out")
    boxes = Boxes(
        "m: clips of each class left out",
        "CorLoc, %, oracle-per-class",
        tuple(map(float, ms)),
        tuple(results.corloc(without(m)) for m in ms),
        tuple((f"published, {v}: mean ± std", tuple(pairs)) for v, pairs in theirs.items()),
    )
    left = [f"{m}" for m in ms if m >= fewest]
    notes = [f"Not run: m = {', '.join(left)}; a tag has only {fewest} training clips."] if left else []
    return Findings([table], [boxes], notes)


STABILITY = Study(
    "stability",
    "How much do single clips matter?",
    lambda lab: [without(m) for m in lab.few(LEFT_OUT) if m < _fewest_clips(lab)],
    read_stability,
    (
        "A seed here is a sample of clips; the seed of the training is always 0. The paper has 30 samples: --seeds 30.",
        "Clips are left out of stage 2 only; all samples share one classifier. The paper does not say whether its do.",
    ),
    values=LEFT_OUT,
)
