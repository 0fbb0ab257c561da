"""Compare thresholds that need no box with the one boxes would choose: python scripts/thresholds.py RUN BOXES.

For each method: CorLoc (mean over classes, percent) on validation and test frames at the best threshold on validation
frames, and at the mean of the validation maps, at Otsu's threshold of them and at one half, which need no box.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from colocam.boxes import level_histogram, otsu_of_histogram
from colocam.data.samples import labelled_samples, scaled_boxes
from colocam.data.truth import read_truth
from colocam.evaluation import maps_of, methods_of_run
from colocam.metrics import PUBLISHED_THRESHOLDS, Frames, best_threshold, box_hits
from colocam.run import open_run
from colocam.selection import tags_only_threshold


def main(folder: Path, boxes: Path) -> None:
    """Print one line per method and threshold."""
    run, truth = open_run(folder, "cpu"), read_truth(boxes)
    tags, size = run.catalogue.tags, run.config.frames.crop
    parts = {}
    for split in ("val", "test"):
        per_clip = run.config.frames.per_val_clip if split == "val" else None
        samples = labelled_samples(run.clips(split), tags, truth, per_clip, present=True)
        videos = np.array([clip.clip.video for clip, _ in samples.where()])
        parts[split] = samples, scaled_boxes(samples, truth, size), Frames(tags, samples.classes.numpy(), videos)
    for method, mapper in methods_of_run(run).items():
        maps = {split: maps_of(run, mapper, samples) for split, (samples, _, _) in parts.items()}
        counts = level_histogram(torch.from_numpy(maps["val"]), relative=True).sum(0)
        _, val_boxes, val_frames = parts["val"]
        best = best_threshold(box_hits(maps["val"], val_boxes, PUBLISHED_THRESHOLDS), val_frames, PUBLISHED_THRESHOLDS)
        otsu = (float(otsu_of_histogram(counts)[0]) + 0.5) / 255
        mean = tags_only_threshold(maps["val"])
        for name, threshold in (("best on val", best), ("mean", mean), ("Otsu", otsu), ("one half", 0.5)):
            scores = [
                100 * float(np.nanmean(frames.class_means(box_hits(maps[split], true, [threshold]))[:, 0]))
                for split, (_, true, frames) in parts.items()
            ]
            print(f"{method:9} {name:12} τ {threshold:.2f}  val {scores[0]:.1f}  test {scores[1]:.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
