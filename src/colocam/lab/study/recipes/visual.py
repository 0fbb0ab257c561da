"""Examples and typical failures, chosen by rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.samples import Boxes
from colocam.evaluation.cases import choose_cases, save_cases
from colocam.evaluation.run_evaluation import EvaluationSet, MethodResult, measure, methods_of_run
from colocam.lab.study.cells import Cam, Cell, Result, Trained, run_cell
from colocam.lab.study.failures import RULES, examples, find_failures
from colocam.lab.study.recipe import Study
from colocam.lab.study.results import Findings, Results
from colocam.lab.study.study_figures import Images
from colocam.lab.study.study_tables import Table
from colocam.lab.study.workplace import Lab
from colocam.metrics import best_overlaps
from colocam.report.gallery import gallery
from colocam.run import open_run
from colocam.temporal.path import boxes_of_shots

CAM, TRAINED = Cam("layercam"), (Trained("tcam"), Trained("colocam"))


@dataclass(frozen=True, slots=True)
class Examples:
    """Write examples of LayerCAM, TCAM and CoLo-CAM (seed 0) to cases.npz and count the failures of each kind."""

    seeded = False

    @property
    def label(self) -> str:
        """Title of the cell."""
        return "examples and failures"

    def identity(self, lab: Lab, seed: int) -> Result:
        """Identities of the methods."""
        return {"examples": [cell.identity(lab, seed) for cell in (CAM, *TRAINED)]}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Evaluate the three methods on the test frames and choose examples."""
        runs = {cell.method: run_cell(lab, cell, seed)[0] for cell in TRAINED}
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config((), seed)))
        mappers = methods_of_run(evaluation_set.run, [CAM.name])
        for method, run in runs.items():
            mappers[method] = methods_of_run(open_run(run, lab.device), [])[method]
        found = {name: measure(evaluation_set, mapper) for name, mapper in mappers.items()}
        maps = {name: method.maps for name, method in found.items()}
        thresholds = {name: method.threshold for name, method in found.items()}
        samples, true = evaluation_set.evaluated.samples, evaluation_set.evaluated.boxes
        boxes, ious = _boxes(evaluation_set, found["colocam"])
        _, cam_ious = _boxes(evaluation_set, found[CAM.name])
        clips = samples.indices.clips.numpy()
        failures = find_failures(boxes, ious, cam_ious, true, clips)
        chosen = [case for case in choose_cases(ious, samples.classes.numpy(), clips) if case[1] != "empty"]
        chosen += examples(failures, clips)
        save_cases(
            folder / "cases.npz",
            samples,
            true,
            maps,
            thresholds,
            {name: method.chooser for name, method in found.items()},
            evaluation_set.predicted,
            evaluation_set.evaluated.tags,
            chosen=chosen,
        )
        return {
            "frames": len(samples),
            "frames with several": sum(len(frame) > 1 for frame in true),
            "empty frames": sum(len(frame) == 0 for frame in true),
            "failures": {name: len(frames) for name, frames in failures.items()},
        }


def _boxes(
    evaluation_set: EvaluationSet, method: MethodResult
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(N, 4) boxes, NaN where there is none, and (N,) IoU, NaN without the object."""
    true: list[Boxes] = evaluation_set.evaluated.boxes
    present = evaluation_set.evaluated.present
    clips = evaluation_set.evaluated.samples.indices.clips.numpy()
    boxes, found = boxes_of_shots(method.maps, method.threshold, method.chooser, clips)
    ious = np.full(len(boxes), np.nan)
    overlaps = best_overlaps(boxes[present][:, None], [frame for frame in true if len(frame)])[:, 0]
    ious[present] = np.where(found[present], overlaps, 0.0)
    return np.where(found[:, None], boxes, np.nan).astype(np.float64), ious


def cells(lab: Lab) -> Sequence[Cell]:  # noqa: ARG001 - the same on all data
    """The examples; they train the methods of seed 0."""
    return [Examples()]


def read(lab: Lab, results: Results) -> Findings:  # noqa: ARG001
    """Images, and the number of failures of each kind."""
    cell = Examples()
    groups = gallery(results.folders[cell] / "cases.npz") if cell in results.folders else []
    found: Result = next(iter(results.of(cell)), {"failures": {}, "frames": 0})
    rows = tuple(
        ("Box on an empty frame" if name == "empty" else name, rule, float(found["failures"].get(name, 0)))
        for name, rule in RULES.items()
    )
    title = (
        f"CoLo-CAM, seed 0: failures among {found['frames']} labelled test frames, of which "
        f"{found.get('frames with several', 0)} show several objects and {found.get('empty frames', 0)} none; boxes at "
        "the threshold tags-only"
    )
    table = Table("table", title, ("failure", "rule", "frames"), rows, digits=0)
    return Findings([table], [Images(tuple(groups))], (), groups)


STUDY = Study(
    "visual",
    "What do the maps look like, and where do they fail?",
    cells,
    read,
    ("By rule: of each class the best, the median and the worst frame of CoLo-CAM, then examples of each failure.",),
)
