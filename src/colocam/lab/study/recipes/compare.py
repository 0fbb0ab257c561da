"""All methods side by side, and the published rows of methods that cannot be run here."""

from collections.abc import Sequence

from colocam.cams import classifier_cams
from colocam.evaluation.metrics.protocols import PROTOCOLS, PUBLISHED_PROTOCOL
from colocam.evaluation.result import method_title
from colocam.lab.study.cells import Cam, Cell, Result, Trained
from colocam.lab.study.clip_cells import ClipRow
from colocam.lab.study.clocks import FrameTime
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import SHOWN, Findings, Results, corloc_bars
from colocam.lab.study.study_tables import Entry, Table, order_note
from colocam.lab.study.workplace import Lab

CELLS: dict[str, tuple[str, Cell, Cell]] = {
    **{name: (method_title(name), Cam(name), FrameTime(name)) for name in classifier_cams()},
    "fcam": ("F-CAM", Trained("fcam"), FrameTime("localizer")),
    "clip-es": ("CLIP-ES", ClipRow(), ClipRow()),
    "tcam": ("TCAM", Trained("tcam"), FrameTime("localizer")),
    "colocam": ("CoLo-CAM", Trained("colocam"), FrameTime("localizer")),
}
"""Key in published.yaml → title, cell, and the cell of its time."""


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """All cells and their times."""
    return list(dict.fromkeys(cell for _, *both in CELLS.values() for cell in both))


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001
    """Averages and times; ours per class; the published ones per class."""
    numbers = published("compare")["rows"]
    keyed = {version: {row["key"]: row for row in numbers[version] if "key" in row} for version in numbers}
    averages = {f"published, {v}": [keyed[v][key]["average"] for key in CELLS] for v in keyed}
    rows = [(name, cell) for name, cell, _ in CELLS.values()]
    ours = [results.corloc(cell) for _, cell in rows]
    return Findings(
        [_averages(results), _classes(results), *(_published_classes(version) for version in numbers)],
        [corloc_bars(results, rows, averages)],
        order_note([name for name, _ in rows], ours, averages),
    )


def _averages(results: Results) -> Table:
    numbers = published("compare")["rows"]
    both = {version: {row["method"]: row for row in numbers[version]} for version in numbers}
    lines: list[tuple[Entry, ...]] = []
    for method in dict.fromkeys([*both["v1.0"], *both["v2.2"]]):
        theirs = [both[version].get(method, {}) for version in both]
        known = next(row for row in theirs if row)
        ours: list[Entry] = [None] * (len(PROTOCOLS) + 1)
        if "key" in known:
            _, cell, timer = CELLS[known["key"]]
            ours = [results.corloc(cell, protocol) for protocol in PROTOCOLS]
            ours.append(results.value(timer, "ms"))
        source = "quoted" if "key" not in known else "run here" if ours[0] is not None else "not run"
        lines.append((method, source, *ours, *(row.get("average") for row in theirs), known.get("ms")))
    device = next((found["device"] for found in results.of(FrameTime("localizer"))), "not measured")
    title = (
        "CorLoc in percent, mean over classes; published figures choose the threshold as oracle-per-class does. "
        f"Time per frame: ours on {device}, published on a Tesla P100"
    )
    columns = ("method", "source", *PROTOCOLS, "ms/frame", "published, v1.0", "published, v2.2", "published ms/frame")
    return Table("table", title, columns, tuple(lines))


def _classes(results: Results) -> Table:
    found: Result = next((run["corloc"] for _, cell, _ in CELLS.values() for run in results.of(cell)), {})
    tags = tuple(found.get(PUBLISHED_PROTOCOL, {}).get("classes", ()))
    lines = [
        (f"{name}, {protocol}", *(results.corloc(cell, protocol, tag) for tag in tags))
        for protocol in SHOWN
        for name, cell, _ in CELLS.values()
        if results.of(cell)
    ]
    return Table("classes", "Ours per class, CorLoc in percent", ("method, protocol", *tags), tuple(lines))


def _published_classes(version: str) -> Table:
    source = published("compare")
    lines = tuple(
        (row["method"], *row["classes"], row["average"], row.get("mean", "")) for row in source["rows"][version]
    )
    return Table(
        f"published-{version}",
        f"Published per class, YouTube-Objects {version}, CorLoc in percent (oracle-per-class); last: the mean of "
        "the row's classes where the printed average is another",
        ("method", *source["classes"], "average", "mean"),
        lines,
    )


STUDY = Study(
    "compare",
    "All methods side by side",
    cells,
    read,
    (
        "All CAMs and decoders share one classifier per seed.",
        "F-CAM's and TCAM's seeds (one pixel of each kind) and maps are as published.",
        "CoLo-CAM's seeds, colour mean and focus are those of the configuration; the study losses has its term alone.",
        "GradCAM and XGradCAM are one map here, and so are GradCAM++ and Smooth-GradCAM++ (docs/guide/cams.md).",
        "Time: one frame on the device; on a GPU every method is one recorded pass of the plain network in bfloat16.",
        "Rows marked 'quoted' are numbers of the paper; these methods are not implemented here.",
    ),
)
