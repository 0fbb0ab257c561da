"""Run a study: all cells of a seed, then the next seed; finished cells are not run again."""

from pathlib import Path
from typing import Any

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, suggest
from colocam.utils.progress import say
from lab.study.cells import CannotRunError, run_cell
from lab.study.costs import COST, LOSS_TIME
from lab.study.curves import ADAPTIVE, FRAMES, LAMBDA, STABILITY
from lab.study.examples import VISUAL
from lab.study.methods import CLIP_ES, COMPARE, LOSSES, NETWORKS, SAMPLING, TEMPORAL
from lab.study.output import write_study
from lab.study.recipe import Results, Study, of_paper
from lab.study.videos import VIDEOS
from lab.study.workplace import Lab, data_name, open_data

IN_ORDER = (
    *(COMPARE, LOSSES, TEMPORAL, FRAMES, LAMBDA, ADAPTIVE, LOSS_TIME, COST),
    *(SAMPLING, NETWORKS, STABILITY, CLIP_ES, VISUAL, VIDEOS),
)
STUDIES: dict[str, Study] = {study.name: study for study in IN_ORDER}
"""By name, in the order of the paper, then our own."""


def list_studies() -> str:
    """All studies, one per line: name, question, table or figure of the paper."""
    width = max(map(len, STUDIES))
    return "\n".join(
        f"{study.name:{width}}  {study.title} – {of_paper(study.name).partition('. ')[0]}" for study in STUDIES.values()
    )


def run_study(
    name: str,
    *,
    data: str = "demo",
    boxes: Path | None = None,
    out: Path | None = None,
    seeds: int | None = None,
    smoke: bool = False,
    values: tuple[float, ...] = (),
    **conditions: Any,  # noqa: ANN401 - fields of Lab
) -> Path:
    """Run a study, write its tables, figures and page, and return their folder.

    Args:
        name: a key of ``STUDIES``.
        data: ``demo``, a folder with manifest.csv and truth.csv, or a manifest.
        boxes: table of true boxes, where ``data`` is a manifest.
        out: folder of all studies on these data, ``studies/<data>`` if None; they share stage 1 and equal cells.
        seeds: seeds 0 … seeds-1; 3 if None, 1 in a smoke test.
        smoke: tiny sizes and few cells, to test that everything runs.
        values: run only these of the values that the study varies; empty: all of them.
        conditions: further fields of :class:`Lab`: preset, config_file, overrides, device and val_boxes.

    Raises:
        InterruptedRunError: stopped by the user; finished cells are kept and written, the same command continues.
    """
    if name not in STUDIES:
        raise ColocamError(f"no study '{name}'{suggest(name, list(STUDIES))}")
    study = STUDIES[name]
    if unknown := [value for value in values if value not in study.values]:
        known = ", ".join(f"{value:g}" for value in study.values)
        remedy = f"must be among {known}, got {unknown[0]:g}" if known else f"cannot be chosen for the study '{name}'"
        raise ArgumentError("values", remedy)
    count = seeds if seeds is not None else 1 if smoke else 3
    if count < 1:
        raise ArgumentError("seeds", f"must be 1 or more, got {count}")
    out = out or Path("studies") / (data_name(data) + "-smoke" * smoke)
    opened = open_data(data, boxes, out / "work" / "world", smoke=smoke)
    lab = Lab(out, opened, smoke=smoke, values=values, **conditions)
    results = Results()
    try:
        _run(study, lab, count, results)
    except (InterruptedRunError, KeyboardInterrupt) as stop:
        write_study(study, lab, count, results)
        raise InterruptedRunError(
            f"{str(stop).partition(':')[0] or 'stopped'}: run the same command again to continue the study"
        ) from stop
    return write_study(study, lab, count, results)


def _run(study: Study, lab: Lab, seeds: int, results: Results) -> None:
    """Run seed by seed, so that an interrupted study has complete tables of fewer seeds."""
    cells = study.cells(lab)
    for seed in range(seeds):
        for number, cell in enumerate(cells, start=1):
            if cell in results.reasons or (seed and not cell.seeded):
                continue
            say(f"{study.name}: seed {seed}, cell {number} of {len(cells)}: {cell.label}")
            try:
                folder, result = run_cell(lab, cell, seed)
            except CannotRunError as error:
                results.reasons[cell] = str(error)
                say(str(error))
                continue
            results.folders.setdefault(cell, folder)
            results.found.setdefault(cell, {})[seed] = result
