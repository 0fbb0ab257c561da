"""Measure boxes over time with and without smoothing: python scripts/steadiness.py RUN BOXES [SPLIT].

For each way of ``colocam localize --smooth``: CorLoc (mean over classes, percent), change, jitter and sudden shifts of
the boxes of all videos of a split (val unless told), in pixels of the original video, at the model's stored threshold.
"""

import sys
from pathlib import Path

import numpy as np

from colocam import Localizer
from colocam.data.truth import read_truth
from colocam.metrics import steadiness
from colocam.metrics.hits import inclusive_iou
from colocam.run import open_run


def main(folder: Path, boxes: Path, split: str = "val") -> None:
    """Print one line per way of smoothing."""
    run, truth = open_run(folder, "cpu"), read_truth(boxes)
    clips = [clip for clip in run.catalogue.clips if clip.split == split]
    for smooth in ("none", "online", "offline"):
        right: dict[str, list[bool]] = {tag: [] for tag in run.catalogue.tags}
        tracks = []
        for clip in clips:
            found = list(Localizer.load(folder, "cpu", smooth=smooth, tag=clip.tag)(clip.path))
            tracks.append(np.array([f.box or (np.nan,) * 4 for f in found]))
            for f in found:
                true = truth.boxes(clip.name, f.frame)
                if true:
                    hit = f.box is not None and inclusive_iou(np.array([f.box]), np.array(true)).max() >= 0.5
                    right[clip.tag].append(bool(hit))
        corloc = 100 * np.mean([np.mean(hits) for hits in right.values()])
        still = steadiness(tracks)
        print(
            f"{smooth:8} CorLoc {corloc:.1f}, change {still.change:.3f}, jitter {still.jitter:.3f}, "
            f"shifts {still.shifts}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
