"""Compare thresholds that need no box with the best one: python scripts/thresholds.py RUN BOXES.

For each method: CorLoc (mean over classes, percent) on validation and test frames, at the best threshold on validation
frames and at three thresholds that need no box: the mean of the validation maps, Otsu's threshold of them, one half.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from colocam.boxes import level_histogram, otsu_of_histogram
from colocam.boxes.quantize import tags_only_threshold
from colocam.data.truth import read_truth
from colocam.evaluation.run_evaluation import labelled, maps_of, methods_of_run
from colocam.metrics import PUBLISHED_THRESHOLDS, best_threshold
from colocam.run import open_run


def main(folder: Path, boxes: Path) -> None:
    """Print one line per method and threshold."""
    run, truth = open_run(folder, "cpu"), read_truth(boxes)
    parts = {"val": labelled(run, truth, "val", run.config.frames.per_val_clip), "test": labelled(run, truth, "test")}
    for method, mapper in methods_of_run(run, [run.config.cam]).items():
        maps = {split: maps_of(run, mapper, part.samples) for split, part in parts.items()}
        counts = level_histogram(torch.from_numpy(maps["val"]), relative=True).sum(0)
        val_hits = parts["val"].hits(maps["val"], PUBLISHED_THRESHOLDS)
        best = best_threshold(val_hits, parts["val"].frames, PUBLISHED_THRESHOLDS)
        otsu = (float(otsu_of_histogram(counts)[0]) + 0.5) / 255
        mean = tags_only_threshold(maps["val"])
        for name, threshold in (("best on val", best), ("mean", mean), ("Otsu", otsu), ("one half", 0.5)):
            scores = [
                100 * float(np.nanmean(part.frames.class_means(part.hits(maps[split], np.array([threshold])))[:, 0]))
                for split, part in parts.items()
            ]
            print(f"{method:9} {name:12} τ {threshold:.2f}  val {scores[0]:.1f}  test {scores[1]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("boxes", type=Path)
    arguments = parser.parse_args()
    main(arguments.run, arguments.boxes)
