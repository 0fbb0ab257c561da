"""Typical failures, found by rule; the paper shows examples chosen by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.data.batches import Boxes
from colocam.evaluation.cases import choose_cases
from colocam.evaluation.run_evaluation import measure, methods_of_run, save_cases
from colocam.report.gallery import gallery
from colocam.run import open_run
from colocam.types import Float64Array
from lab.study.cells import Cam, Cell, Result, Trained, run_cell
from lab.study.figures import Images
from lab.study.recipe import Findings, Results, Study
from lab.study.tables import Table
from lab.study.workplace import Lab

HIT, MISS = 0.5, 0.1
SEVERAL, WRONG, EMPTY, SHIFT = "Several objects in one box", "Wrong object", "empty", "Sudden shift"
RULES = {
    SEVERAL: f"at least two true boxes, at least half of two of them inside the predicted box, IoU below {HIT}",
    WRONG: f"IoU below {MISS}, for the CAM that gave the seeds, too",
    EMPTY: "a box in a frame without the object",
    SHIFT: f"boxes of neighboring labeled frames of a clip with IoU below {HIT}, true boxes with at least {HIT}",
}
"""Group of the gallery → its rule in words."""
SHOWN = 3
"""Examples per kind, each of another clip."""


def find_failures(
    boxes: Float64Array,
    ious: Float64Array,
    cam_ious: Float64Array,
    true_boxes: Sequence[Boxes],
    clips: npt.NDArray[np.int64],
) -> dict[str, list[int]]:
    """Indices of the frames that match each rule, in order; of a sudden shift the second frame.

    Args:
        boxes: (N, 4) predicted corners in model pixels, NaN where there is none.
        ious: (N,) with the best true box; NaN without the object.
        cam_ious: (N,) the same for the class activation map.
        true_boxes: (k, 4) of each frame.
        clips: (N,) index of the clip; frames of a clip are consecutive and in order.
    """
    found: dict[str, list[int]] = {group: [] for group in RULES}
    has_box: npt.NDArray[np.bool_] = np.isfinite(boxes.sum(1))
    for i, true in enumerate(true_boxes):
        if len(true) == 0:
            if has_box[i]:
                found[EMPTY].append(i)
            continue
        if len(true) > 1 and has_box[i] and ious[i] < HIT and (_inside(true, boxes[i]) >= 0.5).sum() > 1:
            found[SEVERAL].append(i)
        if ious[i] < MISS and cam_ious[i] < MISS:
            found[WRONG].append(i)
        neighbors = i > 0 and clips[i] == clips[i - 1] and has_box[i] and has_box[i - 1] and len(true_boxes[i - 1]) > 0
        if neighbors and iou(boxes[i], boxes[i - 1]) < HIT <= iou(true[:, None], true_boxes[i - 1][None]).max():
            found[SHIFT].append(i)
    return found


def examples(found: dict[str, list[int]], clips: npt.NDArray[np.int64]) -> list[tuple[int, str]]:
    """A few frames of each kind, the first of each clip; for a sudden shift also the frame before it."""
    chosen: list[tuple[int, str]] = []
    for group, frames in found.items():
        first = list(dict.fromkeys(int(clips[i]) for i in frames))[:SHOWN]
        for clip in first:
            frame = next(i for i in frames if clips[i] == clip)
            chosen += [(frame - 1, group), (frame, group)] if group == SHIFT else [(frame, group)]
    return chosen


def _inside(true: Boxes, box: Float64Array) -> Float64Array:
    """(k,) share of each true box that lies in ``box``."""
    sides = np.minimum(true[:, 2:], box[2:]) - np.maximum(true[:, :2], box[:2])
    whole = (true[:, 2:] - true[:, :2]).prod(1)
    return np.asarray(np.maximum(sides, 0).prod(1) / np.maximum(whole, 1e-9), np.float64)


CAM, TRAINED = Cam("layercam"), (Trained("tcam"), Trained("colocam"))


@dataclass(frozen=True, slots=True)
class Examples(Cell):
    """Write examples of LayerCAM, TCAM and CoLo-CAM (seed 0) to cases.npz and count the failures of each kind."""

    title = "examples and failures"
    seeded = False

    def identity(self, lab: Lab, seed: int) -> Result:
        """Identities of the methods."""
        return {"examples": [cell.identity(lab, seed) for cell in (CAM, *TRAINED)]}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:
        """Evaluate the three methods on the test frames and choose examples."""
        runs = {cell.method: run_cell(lab, cell, seed)[0] for cell in TRAINED}
        evaluation_set = lab.evaluation_set(lab.stage1(lab.config((), seed)))
        mappers = methods_of_run(evaluation_set.run, [CAM.method])
        for method, run in runs.items():
            mappers[method] = methods_of_run(open_run(run, lab.device), [])[method]
        found = {name: measure(evaluation_set, mapper) for name, mapper in mappers.items()}
        samples, true = evaluation_set.evaluated.samples, evaluation_set.evaluated.boxes
        boxes, ious = found["colocam"].boxes(evaluation_set.evaluated)
        _, cam_ious = found[CAM.method].boxes(evaluation_set.evaluated)
        clips = samples.indices.clips.numpy()
        failures = find_failures(boxes, ious, cam_ious, true, clips)
        chosen = [case for case in choose_cases(ious, samples.classes.numpy(), clips) if case[1] != "empty"]
        chosen += examples(failures, clips)
        save_cases(folder / "cases.npz", evaluation_set, found, chosen)
        return {
            "frames": len(samples),
            "frames with several": sum(len(frame) > 1 for frame in true),
            "empty frames": sum(len(frame) == 0 for frame in true),
            "failures": {name: len(frames) for name, frames in failures.items()},
        }


def read_visual(lab: Lab, results: Results) -> Findings:  # noqa: ARG001 - the same on all data
    """Images, and the number of failures of each kind."""
    cell = Examples()
    groups = gallery(results.folders[cell] / "cases.npz") if cell in results.folders else []
    found: Result = next(iter(results.of(cell)), {"failures": {}, "frames": 0})
    rows = tuple(
        ("Box on an empty frame" if name == "empty" else name, rule, float(found["failures"].get(name, 0)))
        for name, rule in RULES.items()
    )
    title = (
        f"CoLo-CAM, seed 0: failures among {found['frames']} labeled test frames, of which "
        f"{found.get('frames with several', 0)} show several objects and {found.get('empty frames', 0)} none; boxes at "
        "the threshold tags-only"
    )
    table = Table("table", title, ("failure", "rule", "frames"), rows, digits=0)
    return Findings([table], [Images(tuple(groups))], (), groups)


VISUAL = Study(
    "visual",
    "What do the maps look like, and where do they fail?",
    lambda _: [Examples()],
    read_visual,
    ("By rule: of each class the best, the median and the worst frame of CoLo-CAM, then examples of each failure.",),
)
