"""The complexity table: time, parameters and operations of LayerCAM and CoLo-CAM."""

from collections.abc import Sequence

from colocam.lab.study.cells import Cell
from colocam.lab.study.clocks import Cost
from colocam.lab.study.published import published
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results
from colocam.lab.study.study_figures import Bars, Series
from colocam.lab.study.study_tables import Entry, Measured, Table
from colocam.lab.study.workplace import Lab

ROWS = {
    "step_s": "SGD step, s",
    "frame_ms": "inference of one frame, ms",
    "frames_per_s": "inference, frames/s",
    "parameters_m": "parameters, M",
    "learnable_m": "learnable parameters, M",
    "gflops": "FLOPs of one frame, G",
    "gmacs": "MACs of one frame, G",
}
LAYERCAM, COLOCAM = Cost("layercam"), Cost("colocam")


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """Both methods."""
    return [LAYERCAM, COLOCAM]


def read(lab: Lab, results: Results) -> Findings:
    """Both methods beside the published ones, and CoLo-CAM relative to LayerCAM as bars."""
    numbers = published("cost")["rows"]
    rows: list[tuple[Entry, ...]] = []
    ratios: list[Entry] = []
    for key, title in ROWS.items():
        layercam, colocam = results.value(LAYERCAM, key), results.value(COLOCAM, key)
        theirs = numbers[key]
        rows.append((title, layercam, colocam, theirs["layercam"], theirs["colocam"]))
        known = isinstance(layercam, Measured) and isinstance(colocam, Measured)
        ratios.append(colocam.mean / layercam.mean if known and colocam and layercam else None)
    found = next(iter(results.of(COLOCAM)), {})
    where = f"{found.get('backbone')}, {found.get('size')}², {found.get('device')}"
    settings = lab.config()
    table = Table(
        "table",
        f"Ours: {where}, steps of {settings.classifier.batch} (LayerCAM), {settings.localizer.batch} (CoLo-CAM); "
        "published: ResNet50, 224², A100, steps of 32",
        ("quantity", "LayerCAM, ours", "CoLo-CAM, ours", "LayerCAM, published", "CoLo-CAM, published"),
        tuple(rows),
        digits=3,
    )
    published_ratios = [numbers[key]["colocam"] / numbers[key]["layercam"] for key in ROWS]
    bars = Bars(
        "CoLo-CAM relative to LayerCAM",
        tuple(ROWS.values()),
        (Series("ours", ratios), Series("published", published_ratios, published=True)),
    )
    return Findings([table], [bars])


STUDY = Study(
    "cost",
    "What do training and inference cost?",
    cells,
    read,
    (
        "LayerCAM is one pass without gradients here (docs/guide/cams.md); the published one differentiates.",
        "LayerCAM's step is one of stage 1, CoLo-CAM's one of stage 2 with all losses.",
        "Inference: a plain pass, recorded on a GPU; 'colocam localize' is faster (docs/notes/speed.md).",
        "FLOPs: convolutions and matrix products (torch.utils.flop_counter), two for each multiply-add.",
        "The preset decides backbone and size: --preset paper gives the published network.",
    ),
)
